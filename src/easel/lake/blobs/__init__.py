"""Content-addressed bytes: one interface, two stores."""
