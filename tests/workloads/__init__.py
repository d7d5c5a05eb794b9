"""Tests of ``koordlet.workloads``."""
