"""The node and disruption controllers of a standalone scheduler.

Covers: nodes of agents that report, taints from conditions, NoExecute, the status of disruption
budgets. Does not cover: deciding where pods go (``scheduler.loop``).
"""
