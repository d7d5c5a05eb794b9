"""Tests of ``koordlet.scheduler.reservation``."""
