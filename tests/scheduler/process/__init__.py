"""Tests of ``koordlet.scheduler.process``."""
