"""Meta-solvers, a module each: `solve(game)` gives the mixture of each side over the strategies that there are."""
