"""Tests of ``koordlet.config``."""
