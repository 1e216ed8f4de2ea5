"""How a policy learns from a batch; one package per algorithm."""
