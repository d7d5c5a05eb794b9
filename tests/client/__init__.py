"""Tests of koordlet/client."""
