"""`srlhpc arena`: policies of several checkpoints against each other."""
