"""What each rank does: actor, policy server, trainer, evaluator, coordinator."""
