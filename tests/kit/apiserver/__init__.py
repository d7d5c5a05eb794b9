"""An API server for tests: HTTP over the SQLite adapter, with a table of what a server adds to it.

Covers: discovery, list and watch, the verbs of objects and of ``status``, ``binding``,
``eviction``, every patch that kubectl sends, tokens and client certificates, faults on demand.
Does not cover: controllers, defaults, quotas, validation by schema. What it answers is judged by
the suite ``tests.conformance``, which a real API server passes, too.
"""
