"""Tests of ``tools.docs``: the pages in the tree are what the code makes."""
