"""Tests of ``koordlet.scheduler.framework``."""
