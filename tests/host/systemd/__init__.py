"""Tests of ``koordlet.host.systemd``."""
