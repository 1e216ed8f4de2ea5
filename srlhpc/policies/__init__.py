"""Networks that act and are trained; one module per named network."""
