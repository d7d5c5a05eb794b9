"""Tests of ``koordlet.model``."""
