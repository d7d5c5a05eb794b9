"""Tests of the generators of files below ``deploy/``."""
