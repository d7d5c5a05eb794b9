"""The demo: a story of latency-sensitive and best-effort work, to look at and to touch.

Covers: the policy that makes its cgroups (``groups``); as root, a service, whoever asks it and a
hog, as processes (``processes``); without root, the same on a recorded machine of two sockets, in
memory (``stage``: its kernel is ``kernel``, what runs there ``story``).
Does not cover: what the workloads may use (the policies decide that as for any other), what is told
about them (``cli.welcome``).

This is the only place where koordlet starts workloads.
"""
