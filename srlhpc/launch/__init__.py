"""From a spec to running ranks: plan, run directory, foreman, rank."""
