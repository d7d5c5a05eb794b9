"""Simulation: the scheduler on objects from files, and generated clusters."""
