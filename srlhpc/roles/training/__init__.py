"""From blocks to a new version."""
