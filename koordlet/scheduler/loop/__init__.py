"""The scheduler at work on a cluster that changes under it.

Covers: what is known (``pod_cache``), what is decided (``core``: no I/O, no clock), what is done
about it (``binder``, ``reporter``), who may do it (``election``), all of it together (``runner``).
Does not cover: single decisions (the modules beside this room), the two stores
(``kubeapi.objects``).
"""
