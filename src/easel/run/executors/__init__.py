"""What drives devices: this machine, and others behind the same interface."""
