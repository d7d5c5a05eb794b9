"""Tests of ``koordlet.policy.framework``."""
