"""One rank: from the plan to roles, links, the loop and the end."""
