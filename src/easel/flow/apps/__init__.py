"""Apps: declared programs that share the pool."""
