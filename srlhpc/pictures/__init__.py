"""Curves and films from what a run has left."""
