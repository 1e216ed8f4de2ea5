"""Hearing every rank, deciding, writing the run's files."""
