"""Policies about CPUs: who runs where, who holds CPUs alone, CPU time."""
