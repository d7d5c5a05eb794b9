"""Reservations: room on nodes for pods that are yet to come.

One object owns all reservation state, and one plugin asks it::

    Reservation objects ──put/drop──▶ cache.ReservationCache ◀──status/step── loop
                                      │  by_uid: info.ReservationInfo
                                      │     spec       parsing.read: what the object says
                                      │     owners     pods that draw on it ─┐
                                      │     allocated  their requests        │
                                      │     reserve_pod  keeps its place     │
                                      │  claims.Claims                       │
                                      │     index      owner entries ─▶ reservations
                                      │     claims     pod class ─▶ reservations by node
                                      ▼                                      │
    Columns ◀── place/remove reserve pods, adjust by what is not held        │
            ───── pod_placed / pod_removed ──────────────────────────────────┘

    plugins.reservation:  refine (the claim of a pod's class) ─▶ fit (which nodes, which one serves)
                          ─▶ draw (the pod draws on it; the columns report it once it is placed)

==================== ============================ ==================================
state                written by                   read by
==================== ============================ ==================================
spec, stored status  ``cache.put``                ``lifecycle``, ``matching``, ``fit``
phase, node, row     ``cache`` (placed, step)     ``loop``, ``claims``, ``fit``
owners, allocated    ``cache``, as columns report ``fit``, ``lifecycle``
claims               ``cache``, as phases change  the plugin, ``plugins.resources``
requested amounts    ``cache``, through columns   every plugin
==================== ============================ ==================================

The other modules are pure: ``parsing`` (object to ``spec``), ``reserve_pod`` (spec to the pod that
ordinary plugins place), ``matching`` (may a pod use it), ``fit`` (does it serve there),
``preallocation`` (which running pods it takes over), ``lifecycle`` (phases and conditions).
"""
