"""What commands need of the cluster profile that only look at runs; loads nothing."""

START_SECONDS = 300
"""How long the ranks of an attempt may take until all of them work, unless a profile says otherwise."""
