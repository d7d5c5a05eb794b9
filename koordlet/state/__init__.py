"""Persistent state: journal, checkpoints, audit log, hand-over. One format each.

Covers: files of our own below the state directory. Does not cover: kernel files (``host.fs.root``).
"""
