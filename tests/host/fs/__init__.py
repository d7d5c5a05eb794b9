"""Tests of ``koordlet.host.fs``."""
