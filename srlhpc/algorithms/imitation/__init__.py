"""What rules share that learn to act as records say one should."""
