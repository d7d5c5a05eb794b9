"""Tests of the store that are not the port's: those are in tests.conformance."""
