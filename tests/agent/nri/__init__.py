"""Tests of ``koordlet.agent.lifecycle.nri``."""
