"""The strategies of both peers: which pods should leave.

Covers: one module for each family; each class reads its own arguments and yields intents. Does not
cover: who may be evicted, how many (the rest of ``descheduling``).
"""
