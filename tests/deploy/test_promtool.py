"""Prometheus takes the alert rules and every query of the dashboards, where it is installed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.kit import needs

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
PROMTOOL = shutil.which("promtool")

#: Debian's package prometheus has it.
pytestmark = needs.program("promtool")


def judged(rules: Path) -> subprocess.CompletedProcess[str]:
    """What promtool says of a file of rules."""
    words = [str(PROMTOOL), "check", "rules", str(rules)]
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)


def queries(part: Any) -> Iterator[str]:
    """Every expression of a dashboard, its variables filled in."""
    if isinstance(part, dict):
        if isinstance(part.get("expr"), str):
            yield re.sub(r"\$\{?\w+\}?", "1m", part["expr"])
        part = list(part.values())
    if isinstance(part, list):
        for one in part:
            yield from queries(one)


@pytest.mark.parametrize("name", ["koordlet", "scheduler"])
def test_alerts(name: str) -> None:
    """Syntax, functions and templates."""
    found = judged(DEPLOY / "alerts" / f"{name}.yaml")

    assert found.returncode == 0, found.stderr


@pytest.mark.parametrize("name", ["koordlet", "scheduler"])
def test_the_dashboard(tmp_path: Path, name: str) -> None:
    """Each query is an expression; one that is none is refused."""
    board = json.loads((DEPLOY / "dashboards" / f"{name}.json").read_text())
    asked = sorted(set(queries(board)))
    rules = tmp_path / "rules.yaml"

    def write(*several: str) -> None:
        made = [{"record": f"q:{n}", "expr": one} for n, one in enumerate(several)]
        rules.write_text(yaml.safe_dump({"groups": [{"name": "board", "rules": made}]}))

    write(*asked)
    good = judged(rules)
    write(*asked, "rate(koordlet_ticks_total[5m]")
    bad = judged(rules)

    assert len(asked) > 5
    assert good.returncode == 0, good.stderr
    assert bad.returncode != 0
