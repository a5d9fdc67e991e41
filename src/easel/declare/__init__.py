"""What a user asks for: frozen values, no I/O."""
