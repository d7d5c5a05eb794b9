"""Tests of ``koordlet.scheduler.sim.simulation``."""
