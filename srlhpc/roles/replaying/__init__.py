"""Keeping records and drawing from them at a pace. Free of torch."""
