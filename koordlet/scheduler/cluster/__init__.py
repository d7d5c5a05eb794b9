"""The cluster as the scheduler holds it: columns of nodes, and what may happen to them."""
