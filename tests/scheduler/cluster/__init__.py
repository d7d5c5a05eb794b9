"""Tests of ``koordlet.scheduler.cluster.inventory``."""
