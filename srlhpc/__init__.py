"""srlhpc trains reinforcement-learning agents at scale on Slurm clusters."""

__version__ = "0.1.0"
