"""Environments behind srlhpc's contract (srlhpc.environment); one module per family."""
