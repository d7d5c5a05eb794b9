"""Tests of ``koordlet.state``."""
