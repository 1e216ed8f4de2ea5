"""What networks are built of."""
