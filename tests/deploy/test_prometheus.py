"""A real Prometheus with our rules watches a real agent: alerts fire, and are over again.

Covers: scraping ``/metrics`` as it is, every rule of ``deploy/alerts/operator``.
Does not cover: how long alerts wait (``tests.deploy.test_alert_times``).
"""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path
from typing import Any

import pytest
import yaml

from koordlet import cli
from tests.deploy.alert_rules import ALERTS, EVERY, REPO
from tests.kit import agents, answers, deadline, observing, prometheus

pytestmark = prometheus.NEEDED

#: Others may fire beside it: without their patience a busy host is enough for "late".
_NAME = "KoordletUnhealthy"
_CONFIG = f"{agents.HEADER}log: {{format: json}}\nreport: {{http: {{address: '127.0.0.1:0'}}}}\n"


def groups(*, patient: bool) -> list[dict[str, Any]]:
    """Of all our objects; impatient ones wait for no time at all."""
    objects = yaml.safe_load_all((ALERTS / "operator/prometheus-rules.yaml").read_text())
    several: list[dict[str, Any]] = [group for each in objects for group in each["spec"]["groups"]]
    for group in several:
        for rule in group["rules"]:
            if not patient:
                rule.pop("for", None)
    return several


def exposed(address: str) -> set[str]:
    """The names of an agent's samples, in its own words."""
    lines = answers.text(address, "/metrics").splitlines()
    return {line.partition(" ")[0].partition("{")[0] for line in lines if not line.startswith("#")}


def scraped(server: prometheus.Prometheus) -> set[str]:
    """The names of the agent's samples, as they arrived."""
    rows = server.rows('count by (__name__) ({job="koordlet"})')
    return {row["metric"]["__name__"] for row in rows}


def test_an_agent_is_watched_to_its_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All samples arrive, no rule fails, and nothing fires; then a broken file, then silence."""
    config = tmp_path / "config.yaml"
    config.write_text(_CONFIG)
    with contextlib.ExitStack() as life:
        agent = life.enter_context(observing.listening(tmp_path, config))
        with prometheus.serving(tmp_path / "prometheus", koordlet=agent) as server:
            deadline.until(lambda: server.rows('up{job="koordlet"} == 1'), "the agent is scraped")
            deadline.until(lambda: exposed(agent) <= scraped(server), "every sample arrives")
            server.follow(groups(patient=True))
            assert len(server.rules()) > len(EVERY) > 10
            assert [rule for rule in server.rules() if rule["health"] != "ok"] == []
            digest = hashlib.sha256(config.read_bytes()).hexdigest()
            words = ["alerts", "--prometheus", server.url]
            assert cli.main([*words, "--pool", f"canary={digest}"]) == 0
            assert capsys.readouterr().out == "no alert of koordlet fires\n"

            server.follow(groups(patient=False))
            wrong = {_NAME, "KoordletSilent"}
            deadline.until(lambda: not wrong & server.alerts("firing").keys(), "all is well")
            config.write_text(f"{_CONFIG}mode: enforced\n")
            assert_it_leads_to_its_runbook(
                deadline.until(lambda: server.alerts("firing").get(_NAME), "the alert fires")
            )
            config.write_text(_CONFIG)
            deadline.until(lambda: _NAME not in server.alerts("firing"), "it is over")

            life.close()
            deadline.until(lambda: "KoordletSilent" in server.alerts("firing"), "silence is told")
            assert cli.main(words) == 1
            heard = f"critical  KoordletSilent  nothing is heard of koordlet on {agent}\n"
            assert heard in capsys.readouterr().out


def assert_it_leads_to_its_runbook(alert: dict[str, Any]) -> None:
    """Of a check that failed: it names the check, and a heading of the runbooks."""
    assert alert["labels"]["check"] == "configuration"
    page, _, anchor = alert["annotations"]["runbook_url"].partition("#")
    assert (page.rpartition("/")[2], anchor) == ("runbooks.html", _NAME.lower())
    assert f"\n## {_NAME}\n" in (REPO / "docs/runbooks.md").read_text()
