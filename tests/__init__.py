"""Tests of koordlet; folders mirror those of the package."""
