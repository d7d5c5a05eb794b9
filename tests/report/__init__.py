"""Tests of what we tell the world."""
