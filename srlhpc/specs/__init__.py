"""What a user writes: frozen, checked settings read from YAML."""
