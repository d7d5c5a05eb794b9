"""Tests of the API server's adapter that are not the port's: those are in tests.conformance."""
