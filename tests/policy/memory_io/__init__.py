"""Tests of ``koordlet.policy.memory_io``."""
