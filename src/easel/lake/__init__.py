"""Blobs by content, files by version, file sets by reference, tags, provenance."""
