"""Alert rules speak of metrics and labels that the agent exports, and each has a runbook.

Those of the scheduler are asked of one in ``test_scheduler_queries``, those of the descheduler in
``tests/scheduler/process/test_moves_pages``.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from koordlet.report import metrics
from tests.deploy.alert_rules import EVERY, REPO, rules

RUNBOOKS = (REPO / "docs/runbooks.md").read_text()
#: Labels that Prometheus adds to everything it scrapes.
ADDED = {"instance", "job"}


FAMILIES = {family.name: family for family in metrics.table()}


def family(name: str) -> str:
    """The family of a metric's name: counters are named with their suffix."""
    return name if name in FAMILIES else name.removesuffix("_total")


@pytest.mark.parametrize("rule", EVERY, ids=lambda rule: str(rule["alert"]))
def test_every_alert_has_a_runbook(rule: dict[str, Any]) -> None:
    """Of its own name, and its link leads there."""
    assert f"\n## {rule['alert']}\n" in RUNBOOKS
    where = f"https://koordlet.example/runbooks.html#{rule['alert'].lower()}"
    assert rule["annotations"]["runbook_url"] == where
    assert len(rule["annotations"]["description"].split()) > 5
    assert rule["labels"]["severity"] in ("critical", "warning", "info")


@pytest.mark.parametrize("rule", rules("koordlet"), ids=lambda rule: str(rule["alert"]))
def test_an_alert_of_the_agent(rule: dict[str, Any]) -> None:
    """Its metrics exist, and its words use labels that they have."""
    names = set(re.findall(r"koordlet_[a-z_0-9]+", rule["expr"]))
    labels = ADDED.union(*(FAMILIES[family(name)].labels for name in names))

    assert names
    assert {family(name) for name in names} <= FAMILIES.keys()
    used = set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"]))
    assert used <= labels


def test_no_runbook_without_an_alert() -> None:
    """What nobody is called for is written elsewhere."""
    written = set(re.findall(r"^## (\w+)$", RUNBOOKS, re.MULTILINE))

    assert written == {rule["alert"] for rule in EVERY}
