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

from koordlet.report import families, metrics
from tests.deploy import test_scheduler_queries
from tests.kit import needs

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
PROMTOOL = shutil.which("promtool")

#: Debian's package prometheus has it.
pytestmark = needs.program("promtool")


def check_rules(rules: Path) -> subprocess.CompletedProcess[str]:
    """Run promtool over a file of rules."""
    words = [str(PROMTOOL), "check", "rules", str(rules)]
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)


def queries(part: Any) -> Iterator[str]:
    """Every expression of a dashboard, its variables filled in."""
    if isinstance(part, dict):
        if isinstance(part.get("expr"), str):
            yield re.sub(r"\$\{?\w+\}?", "1m", part["expr"])
        part = list(part.values())
    if isinstance(part, list):
        for item in part:
            yield from queries(item)


@pytest.mark.parametrize("name", ["koordlet", "scheduler", "descheduler", "recording"])
def test_alerts(name: str) -> None:
    """Syntax, functions and templates."""
    done = check_rules(DEPLOY / "alerts" / f"{name}.yaml")

    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["koordlet", "scheduler", "fleet"])
def test_the_dashboard(tmp_path: Path, name: str) -> None:
    """Each query is an expression; one that is none is refused."""
    board = json.loads((DEPLOY / "dashboards" / f"{name}.json").read_text())
    every = sorted(set(queries(board)))
    rules = tmp_path / "rules.yaml"

    def write(*several: str) -> None:
        records = [{"record": f"q:{n}", "expr": query} for n, query in enumerate(several)]
        rules.write_text(yaml.safe_dump({"groups": [{"name": "board", "rules": records}]}))

    write(*every)
    good = check_rules(rules)
    write(*every, "rate(koordlet_ticks_total[5m]")
    bad = check_rules(rules)

    assert len(every) > 5
    assert good.returncode == 0, good.stderr
    assert bad.returncode != 0


def test_names_and_helps_of_our_own_metrics() -> None:
    """Promtool complains of names that are Koordinator's, or are kept for one version, alone."""
    lines = []
    for family in metrics.table():
        counts = family.type == families.COUNTER
        name = f"{family.name}_total" if counts else family.name
        lines += [f"# HELP {name} {family.help}", f"# TYPE {name} {family.type}"]
        labels = dict.fromkeys(family.labels, "x")
        if family.type == families.HISTOGRAM:
            lines.append(sample(f"{name}_bucket", {**labels, "le": "+Inf"}))
            lines += [sample(f"{name}{part}", labels) for part in (families.SUM, families.COUNT)]
        else:
            lines.append(sample(name, labels))
    complaints = find_complaints("\n".join([*lines, ""]))

    assert complaints == {
        "koordlet_container_scaled_cfs_burst_us",
        "koordlet_container_scaled_cfs_quota_us",
        "koordlet_counter_descriptors",
        "koordlet_counter_files_total",
        "koordlet_tick_duration_quantile_seconds",
        "koordlet_tick_lateness_quantile_seconds",
    }
    groups = {family.name: family.group for family in metrics.table()}
    assert {groups[name.removesuffix("_total")] for name in complaints} == {
        *(families.PEER, families.DEPRECATED)
    }


def sample(name: str, labels: dict[str, str]) -> str:
    """A line."""
    shown = ",".join(f'{label}="{value}"' for label, value in labels.items())
    return f"{name}{{{shown}}} 1" if shown else f"{name} 1"


def find_complaints(text: str) -> set[str]:
    """The metrics that promtool complains of."""
    words = [str(PROMTOOL), "check", "metrics"]
    done = subprocess.run(
        words, input=text, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode in (0, 3), done.stderr
    return {line.split()[0] for line in (done.stdout + done.stderr).splitlines() if line.strip()}


def test_what_a_scheduler_exports(ram: Path) -> None:
    """It has a help for each family; nothing is complained of."""
    text = test_scheduler_queries.exported(ram)

    assert find_complaints(text) == set()
    assert "# HELP scheduler_pending_pods Pending pods by queue." in text
