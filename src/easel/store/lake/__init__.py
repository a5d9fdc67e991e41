"""Queries on what the lake holds."""
