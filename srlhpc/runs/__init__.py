"""The folder of a run: its paths, who holds it, where it stands, how it ended."""
