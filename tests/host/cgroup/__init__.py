"""Tests of ``koordlet.host.cgroup``."""
