"""Tests of ``koordlet.agent.lifecycle``."""
