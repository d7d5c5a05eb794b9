"""Tests of reading the machine."""
