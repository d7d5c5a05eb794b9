"""Tests of ``koordlet.host.topology.discovery``."""
