"""Tests of ``koordlet.cli``."""
