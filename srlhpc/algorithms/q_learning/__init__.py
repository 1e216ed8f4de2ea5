"""What rules share that learn values of actions from the greatest of what follows."""
