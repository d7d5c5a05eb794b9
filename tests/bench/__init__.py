"""Benchmarks: ratios to a named reference in the same run, gated.

Covers: what a number means and when it fails (``gate``), one module for each budget.
Does not cover: absolute figures: they are printed and published, never gated.

Run them with ``make bench``, or ``python -m tests.bench [NAME]``.
"""
