"""Checks of the checkout that no other tool makes."""
