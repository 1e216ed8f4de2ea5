"""The matchmaker: who plays whom, and what came of it."""
