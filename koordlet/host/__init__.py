"""Reads. What the kernel says, without opinions.

Covers: the syscall port (``host.fs.root``), recorded trees and archives, topology, cgroups, procfs.
Does not cover: any decision. A vanished cgroup is a value (``Gone``), a missing kernel feature is a
value (``Unsupported``), found at start and shown to the operator.
"""
