"""API objects, whoever keeps them: kinds, selectors, the port to a store of them, a cache over it.

Agent and scheduler read through it alike. Does not cover: the adapters (``kube``,
``scheduler.store``), what the objects mean.
"""
