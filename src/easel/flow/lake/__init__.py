"""The use cases of the lake."""
