"""What Slurm is asked for and what it says."""
