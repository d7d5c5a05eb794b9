"""Objects for the API server as plain mappings. Pure.

Covers: one module for each kind: what the object shall say. Does not cover: writing it
(``report.writing``), the schema (``report.crds``), which only the tests load.
"""
