"""Tests of ``koordlet.apply``."""
