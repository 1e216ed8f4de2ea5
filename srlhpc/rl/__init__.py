"""The mathematics of reinforcement learning, on torch tensors and nothing else."""
