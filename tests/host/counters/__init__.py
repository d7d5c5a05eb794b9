"""Tests of ``koordlet.host.counters.groups``."""
