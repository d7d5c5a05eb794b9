"""Cgroups: hierarchies, the tree of groups, which of them are followed, alarms of their memory."""
