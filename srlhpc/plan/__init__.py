"""From a spec to ranks, roles and endpoints. Pure."""
