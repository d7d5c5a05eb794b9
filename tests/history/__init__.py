"""Tests of ``koordlet.history``."""
