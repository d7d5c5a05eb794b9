"""The alert rules of ``deploy/alerts`` as plain data.

Covers: reading them. Does not cover: what they must say (the tests).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import yaml

REPO = Path(__file__).resolve().parents[2]
ALERTS = REPO / "deploy/alerts"


def rules(name: str) -> list[dict[str, Any]]:
    """All of one file."""
    groups = yaml.safe_load((ALERTS / f"{name}.yaml").read_text())["groups"]
    return [cast("dict[str, Any]", rule) for group in groups for rule in group["rules"]]


EVERY = [*rules("koordlet"), *rules("scheduler"), *rules("descheduler")]
