"""Checks of the source tree that no linter has."""
