"""Tests of koordlet/report/objects."""
