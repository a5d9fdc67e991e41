"""The language in which artifacts are found by their metadata."""
