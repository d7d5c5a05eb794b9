"""Tests of ``koordlet.policy.resctrl.resctrl``."""
