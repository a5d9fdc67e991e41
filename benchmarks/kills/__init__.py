"""Kill every kind of process under load, then account for everything that was acknowledged."""
