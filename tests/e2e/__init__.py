"""Tests on the real kernel of this host; each makes its own groups and removes them."""
