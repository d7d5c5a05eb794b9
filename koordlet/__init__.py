"""koordlet: a node agent that decides which CPUs, memory and cache each workload may use."""

from __future__ import annotations

__version__ = "0.1.0"
