"""The mathematics of who plays whom: results, ratings, choice of opponents, mixtures of players. numpy alone."""
