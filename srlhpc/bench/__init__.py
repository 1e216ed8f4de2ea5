"""Measuring the system here: each module offers `measure_...`, which gives rows for a table."""
