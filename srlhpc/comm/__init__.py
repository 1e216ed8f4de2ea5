"""How messages travel between roles: one contract, in process and over MPI."""
