"""Tests of the plugins, from the tables of their semantics."""
