"""Roles that play: actors, and what evaluators share with them."""
