"""Turning blocks into new versions: batches, grants, updates, parts of checkpoints."""
