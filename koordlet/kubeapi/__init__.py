"""API objects: kinds, selectors, the port to a store, the informer over it, the readers of objects.

Agent and scheduler read through it alike. Does not cover: the adapters (``kube``,
``scheduler.store``), the views that each of them makes (``workloads``, ``scheduler.objects``).
"""
