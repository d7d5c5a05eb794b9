"""Tests of ``koordlet.scheduler.objects``."""
