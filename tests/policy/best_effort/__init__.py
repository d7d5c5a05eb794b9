"""Tests of ``koordlet.policy.best_effort``."""
