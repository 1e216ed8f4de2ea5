"""How data lies in memory and on disk: layouts, blocks, slots, checkpoints."""
