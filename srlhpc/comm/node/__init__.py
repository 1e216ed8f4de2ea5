"""The channel contract in memory that the ranks of a node share."""
