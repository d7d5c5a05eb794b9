"""Policies about best-effort work: how many CPUs it gets, what batch and mid pods are offered."""
