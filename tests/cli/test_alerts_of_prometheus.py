"""``koordlet alerts`` against a real Prometheus, whose alerts and agents are rules of the test."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from koordlet import cli
from koordlet.cli import alerts
from tests.kit import prometheus

pytestmark = prometheus.NEEDED

REST, CANARY, OTHER = "0" * 64, "1" * 64, "f" * 64
POOLS = (f"--pool=={REST}", f"--pool=canary={CANARY}")


@pytest.fixture
def server(ram: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[prometheus.Prometheus]:
    """One without agents; the command asks often, and has no patience with them."""
    monkeypatch.setattr(alerts, "_STEP", 0.1)
    monkeypatch.setattr(alerts, "_PATIENCE", 0.0)
    with prometheus.serving(ram / "prometheus") as server:
        yield server


def alert(name: str, severity: str, **more: str) -> dict[str, Any]:
    """The rule of an alert whose condition is always true."""
    rule = {"alert": name, "expr": "vector(1)", "labels": {"severity": severity}}
    return {**rule, "annotations": {"summary": "gone"}, **more}


def agent(name: str, digest: str) -> dict[str, Any]:
    """A rule that leaves the sample of an agent that runs a configuration."""
    labels = {"instance": name, "sha256": digest}
    return {"record": "koordlet_config_info", "expr": "vector(1)", "labels": labels}


def follow(server: prometheus.Prometheus, *rules: dict[str, Any]) -> None:
    """Let these rules be all."""
    server.follow([{"name": "test", "rules": rules}])


def test_only_grave_alerts_of_koordlet_that_fire_count(
    server: prometheus.Prometheus, capsys: pytest.CaptureFixture[str]
) -> None:
    """Others' alerts, pending ones and mere information stop no rollout."""
    words = ["alerts", "--prometheus", server.url]
    assert cli.main(words) == 0
    quiet = [
        alert("NodeDown", "critical"),
        alert("KoordletDown", "critical", **{"for": "1h"}),
        alert("KoordletSeriesDropped", "info"),
    ]
    follow(server, *quiet)
    assert server.alerts("firing").keys() == {"NodeDown", "KoordletSeriesDropped"}
    assert server.alerts("pending").keys() == {"KoordletDown"}
    assert cli.main(words) == 0
    assert capsys.readouterr().out == "no alert of koordlet fires\n" * 2

    follow(server, *quiet, alert("KoordletLate", "warning"))
    assert cli.main(words) == 1
    assert capsys.readouterr().out == "warning   KoordletLate  gone\n"
    assert cli.main([*words, "-o", "json"]) == 1
    row = {"name": "KoordletLate", "severity": "warning", "summary": "gone"}
    assert json.loads(capsys.readouterr().out) == {"version": "v1", "alerts": [row]}


def test_a_pending_alert_is_awaited(
    server: prometheus.Prometheus, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is the same one from answer to answer, and fires when the seconds are long over."""
    follow(server, alert("KoordletDown", "critical", **{"for": "2s"}))

    assert cli.main(["alerts", "--prometheus", server.url, "--seconds", "0.1"]) == 1
    assert capsys.readouterr().out == "critical  KoordletDown  gone\n"


@pytest.mark.parametrize(
    ("running", "pools", "problem"),
    [
        ((), POOLS[:1], "no agent says what it runs"),
        ((), POOLS, "no agent runs the configuration of pool canary"),
        ((REST, REST), POOLS, "no agent runs the configuration of pool canary"),
        ((REST, CANARY, *3 * [OTHER]), POOLS, "3 of 5 agents run another configuration"),
        ((CANARY,), POOLS, ""),
        ((REST, REST, CANARY), POOLS, ""),
    ],
)
def test_each_pool_has_agents_with_its_configuration(
    server: prometheus.Prometheus,
    running: tuple[str, ...],
    pools: tuple[str, ...],
    problem: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """None has another; where that does not come, it is told after a while."""
    follow(server, *(agent(f"n{number}", digest) for number, digest in enumerate(running)))

    assert cli.main(["alerts", "--prometheus", server.url, *pools]) == bool(problem)
    printed = capsys.readouterr()
    assert printed.out == ("" if problem else "no alert of koordlet fires\n")
    assert (f"koordlet: {problem} after 0 s" in printed.err) == bool(problem)
