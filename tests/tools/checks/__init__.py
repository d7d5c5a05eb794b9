"""Tests of ``tools.checks``."""
