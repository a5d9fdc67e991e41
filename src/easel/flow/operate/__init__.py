"""What an admin needs every week: measurements, health, drains, limits, storage, retention."""
