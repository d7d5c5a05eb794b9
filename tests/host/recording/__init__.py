"""Tests of ``koordlet.host.recording.contents``."""
