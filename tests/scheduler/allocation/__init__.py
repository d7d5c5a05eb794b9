"""Tests of ``koordlet.scheduler.allocation``."""
