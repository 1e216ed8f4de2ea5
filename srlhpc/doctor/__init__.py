"""`srlhpc doctor`: whether this machine, and a cluster, can run what srlhpc starts there."""
