"""API objects in any store: kinds, selectors, the port to a store, the informer over it.

Agent and scheduler read through it alike. Does not cover: the adapters (``kube``,
``scheduler.store``), what the objects mean.
"""
