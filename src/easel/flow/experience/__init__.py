"""Experience with public data: gathered by a command, kept in the package, read when a controller starts."""
