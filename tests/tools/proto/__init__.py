"""Tests of ``tools.proto``."""
