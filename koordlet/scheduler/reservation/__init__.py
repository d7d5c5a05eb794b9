"""Reservations: room on nodes for pods that are yet to come.

The way of one: ``parsing`` reads it, ``reserve_pod`` makes a pod of it that the ordinary plugins
place, ``book`` keeps what it holds and who draws on it, ``matching`` finds it for a pod, ``fit``
says whether and how well it serves, ``lifecycle`` says what becomes of it.
"""
