"""Tests of ``koordlet.host.resctrl.tree``."""
