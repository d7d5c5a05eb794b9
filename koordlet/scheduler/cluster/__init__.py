"""The cluster in memory: columns of nodes, and the events that change them."""
