"""Easel: a shared studio for machine learning."""

from easel.version import __version__

__all__ = ["__version__"]
