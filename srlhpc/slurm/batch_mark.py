"""What tells a job's own words, by its batch script or foreman, from all else in its output."""

from __future__ import annotations

FOREMAN = "srlhpc: "
"""Begins what the batch script's own checks and the foreman say of an end that they understand."""
