"""Trying the scheduler on objects from files, and clusters that are made for it."""
