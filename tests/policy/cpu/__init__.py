"""Tests of ``koordlet.policy.cpu``."""
