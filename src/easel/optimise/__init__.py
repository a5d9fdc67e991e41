"""Mathematics only: arrays in, arrays out. No database, no network, no clock."""
