"""The command line, on top of the SDK."""
