"""Tests of the container runtime's plugin interface."""
