"""Tests of ``koordlet.policy``."""
