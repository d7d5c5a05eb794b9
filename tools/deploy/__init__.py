"""Generators of files below ``deploy/``."""
