"""Gangs: pods that are bound together or not at all, and groups of gangs.

Covers: what a gang is (``gang``), which gangs and groups there are and who is in them (``book``),
whose members may be tried (``admission``), one cycle for a group (``attempt``), what a person is
shown of them (``summary``).
Does not cover: how objects spell gangs (``kubeapi.pod_groups``), single pods
(``scheduler.loop.core``), writing to the store (``scheduler.loop.reporter``).
"""
