"""Alert rules speak of metrics and labels that the agent exports, and each has a runbook."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from koordlet.report import metrics

REPO = Path(__file__).resolve().parents[2]
RULES = REPO / "deploy/alerts/koordlet.yaml"
RUNBOOKS = (REPO / "docs/runbooks.md").read_text()
#: Labels that Prometheus adds to everything it scrapes.
ADDED = {"instance", "job"}


def rules() -> list[dict[str, Any]]:
    """All of them."""
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return [cast("dict[str, Any]", rule) for group in groups for rule in group["rules"]]


FAMILIES = {family.name: family for family in metrics.table()}


def family(name: str) -> str:
    """The family of a metric's name: counters are named with their suffix."""
    return name if name in FAMILIES else name.removesuffix("_total")


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: str(rule["alert"]))
def test_an_alert(rule: dict[str, Any]) -> None:
    """Its metrics exist, its words use labels that they have, and a runbook says what to do."""
    names = set(re.findall(r"koordlet_[a-z_0-9]+", rule["expr"]))
    labels = ADDED.union(*(FAMILIES[family(name)].labels for name in names))

    assert names
    assert {family(name) for name in names} <= FAMILIES.keys()
    used = set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"]))
    assert used <= labels
    assert f"\n## {rule['alert']}\n" in RUNBOOKS
    assert rule["annotations"]["runbook"].endswith("#" + rule["alert"].lower())
    assert rule["labels"]["severity"] in ("critical", "warning", "info")


def test_no_runbook_without_an_alert() -> None:
    """What nobody is called for is written elsewhere."""
    written = set(re.findall(r"^## (\w+)$", RUNBOOKS, re.MULTILINE))

    assert written == {rule["alert"] for rule in rules()}
