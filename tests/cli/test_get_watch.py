"""``koordlet get`` and ``watch``: the feed as a person and as a program see it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from koordlet import cli
from koordlet.cli import feed_options
from tests.kit import views
from tests.rpc.conftest import Serve, loop, serve

__all__ = ["loop", "serve"]


@pytest.fixture
def address(serve: Serve) -> str:
    """A feed of a node with two workloads."""
    served = serve()
    served.publish(views.view())
    return f"unix:{served.path}"


def test_get_node(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A line for a person, one document for a program."""
    assert cli.main(["get", "node", "--address", address]) == 0
    table = capsys.readouterr().out
    assert cli.main(["get", "node", "n1", "--address", address, "-o", "json"]) == 0
    document = json.loads(capsys.readouterr().out)

    assert "2-3,4-6" in table
    assert list(document) == ["version", "node"]
    assert document["node"]["summary"]["name"] == "n1"
    assert document["node"]["workloads"]["workloads"][0]["usageMilli"] == 1500
    assert document["node"]["observedAt"] == views.WALL


@pytest.mark.parametrize("name", ["web", "default/web"])
def test_get_workloads(address: str, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """All of them, or one by its name."""
    assert cli.main(["get", "workloads", "--address", address]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3
    assert cli.main(["get", "workloads", name, "--address", address, "-o", "json"]) == 0
    (workload,) = json.loads(capsys.readouterr().out)["workloads"]

    assert (workload["name"], workload["qos"], workload["cpus"]) == ("web", "LS", "2-6")


@pytest.mark.parametrize("what", ["node", "workloads"])
def test_watch(address: str, what: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One document a line, until enough were shown."""
    assert cli.main(["watch", what, "--count", "1", "--address", address, "-o", "json"]) == 0
    assert cli.main(["watch", what, "--count", "1", "--address", address]) == 0
    first, *rest = capsys.readouterr().out.splitlines()

    assert json.loads(first)["version"] == "v1"
    assert rest


@pytest.mark.parametrize(
    "words", [["get", "node", "n2"], ["get", "workloads", "nobody"], ["get", "nodes"]]
)
def test_what_is_not_there(
    address: str, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """A name that nobody has, a service that is not there: exit 1, and a sentence."""
    assert cli.main([*words, "--address", address]) == 1
    assert "koordlet: " in capsys.readouterr().err


def test_nobody_answers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The error says what to do; as JSON where JSON was asked for."""
    assert cli.main(["get", "node", "--state-dir", str(tmp_path), "-o", "json"]) == 1
    error = json.loads(capsys.readouterr().err)["error"]

    assert "nobody answers" in error["message"]
    assert "koordlet run" in error["fix"]


def test_nodes_of_a_scheduler_are_told_in_units() -> None:
    """Memory as people say it; what the scheduler does not say is a dash."""
    common = {"pods": 2, "unschedulable": False, "pressures": []}
    amounts = {"requested": {"cpu": "5", "memory": "9663676416"}}
    allocatable = {"cpu": "8", "memory": "17179869184"}

    _, known, unknown = feed_options.scheduler_lines(
        [
            {"name": "n1", **common, **amounts, "allocatable": allocatable},
            {"name": "n2", **common, "requested": {}, "allocatable": {}},
        ]
    )

    assert known.split() == ["n1", "2", "5/8", "9.0Gi/16.0Gi", "yes", "-"]
    assert unknown.split() == ["n2", "2", "0/-", "0.0Gi/-", "yes", "-"]
