"""Rules that choose past opponents, a module each: `Settings`, and `chances(settings, win_rates)`."""
