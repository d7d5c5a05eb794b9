"""Tests of ``koordlet.host.process``."""
