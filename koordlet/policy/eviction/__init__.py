"""Policies that evict: a node that runs short, and pods that use more than they were offered."""
