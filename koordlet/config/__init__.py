"""The operator's input, validated once: one file, the environment, the command line.

Covers: the schema, reading and merging every source, errors with line and field path, reloading.
Does not cover: the ``config`` command (``cli.config``), acting on a change (``daemon``).
"""

from __future__ import annotations

from koordlet.config.loader import DEFAULT_PATH, Effective, Flag, load
from koordlet.config.reloader import Reloader
from koordlet.config.schema import Config

__all__ = ["DEFAULT_PATH", "Config", "Effective", "Flag", "Reloader", "load"]
