"""Tests of ``koordlet.policy.eviction``."""
