"""Recorded machines: what is recorded, archives and directories, playing one again."""
