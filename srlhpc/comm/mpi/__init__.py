"""The channel contract over MPI."""
