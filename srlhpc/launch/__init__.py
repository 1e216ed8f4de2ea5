"""Starting, watching and ending the ranks of an attempt: the foreman, on this machine and on Slurm."""
