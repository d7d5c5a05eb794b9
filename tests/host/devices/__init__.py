"""Tests of ``koordlet.host.topology.devices``."""
