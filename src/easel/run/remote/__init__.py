"""A worker far from its controller: everything goes out over HTTPS, nothing comes in."""
