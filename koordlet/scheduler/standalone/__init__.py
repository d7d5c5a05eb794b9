"""What the controllers of a cluster would do, for a scheduler that stands alone.

Covers: nodes of agents that report, taints from conditions, NoExecute, the status of disruption
budgets. Does not cover: deciding where pods go (``scheduler.loop``).
"""
