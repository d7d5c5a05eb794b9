"""Tests of koordlet/report/crds."""
