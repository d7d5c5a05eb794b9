"""``koordlet reserve``, ``describe`` and ``delete`` against a keeper of reservations."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from koordlet import cli
from koordlet.cli import reservations as table
from tests.kit import reservations, reserving


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[str]:
    """The state directory of one that listens."""
    with reserving.served(tmp_path) as served:
        yield str(served)


def run(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> Any:
    """Run a command; what it prints in JSON."""
    assert cli.main([*words, "-o", "json"]) == status
    captured = capsys.readouterr()
    return json.loads(captured.out or captured.err)


def test_reserve_describe_delete(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    """By options; repeated, it is the same one."""
    words = ["reserve", "room", "--cpus", "2", "--owner", "app=web", "--state-dir", folder]
    created = run(capsys, *words)["reservation"]
    assert created["spec"]["owners"] == [{"labelSelector": {"matchLabels": {"app": "web"}}}]
    assert run(capsys, *words)["reservation"]["metadata"]["uid"] == created["metadata"]["uid"]

    described = run(capsys, "describe", "reservation", "room", "--state-dir", folder)
    assert described["timeline"][0]["what"] == "created"
    assert cli.main(["describe", "reservation", "room", "--state-dir", folder]) == 0
    assert "Timeline:" in capsys.readouterr().out

    assert run(capsys, "delete", "reservation", "room", "--state-dir", folder)["deleted"]
    again = ["delete", "reservation", "room", "--state-dir", folder]
    assert run(capsys, *again, status=1)["error"]["code"] == "not_found"
    assert not run(capsys, *again, "--ignore-not-found")["deleted"]


def test_a_file(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The manual's own; NAME must be its name."""
    path = str(reservations.FOLDER / "reservation-demo.yaml")
    words = ["-f", path, "--state-dir", folder]

    assert cli.main(["reserve", "reservation-demo", *words]) == 0
    assert "reservation-demo  Pending" in capsys.readouterr().out
    assert "not 'other'" in run(capsys, "reserve", "other", *words, status=2)["error"]["message"]


def test_for_a_unit_and_for_a_process(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The annotation says whom the node's agent gives the room to; cache ways beside it."""
    words = ["reserve", "db", "--node", "n1", "--cpus", "2", "--cache-ways", "4"]
    unit = [*words, "--owner", "unit=postgres.service", "--state-dir", folder]
    notes = run(capsys, *unit)["reservation"]["metadata"]["annotations"]

    assert notes == {
        "koordlet.io/match": '{"unit":"postgres.service"}',
        "node.koordinator.sh/resctrl": '{"llc":{"ways":4}}',
    }
    gone = ["reserve", "p", "--cpus", "1", "--owner", "pid=0", "--state-dir", folder]
    assert "no process" in run(capsys, *gone, status=2)["error"]["message"]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ([], "nothing to reserve"),
        (["--cpus", "1"], "for whom?"),
        (["--cpus", "-1", "--owner", "a=b"], "must be more than nothing"),
        (["--cpus", "one", "--owner", "a=b"], "--cpus: not a quantity"),
        (["--cpus", "1", "--owner", "web"], "not KEY=VALUE"),
        (["--cpus", "1", "--owner", "a=b", "--ttl", "soon"], "not a duration"),
        (["--cpus", "1", "--owner", "a=b", "--cache-ways", "0"], "at least one"),
        (["--cpus", "1", "-f", "x.yaml"], "leave the other options out"),
    ],
)
def test_usage(words: list[str], problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What makes no sense is said before anybody is asked."""
    assert cli.main(["reserve", "r", *words]) == 2
    assert problem in capsys.readouterr().err


def test_nobody_listens(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The socket and what to do."""
    words = ["delete", "reservation", "r", "--state-dir", str(tmp_path)]

    assert cli.main(words) == 1
    assert "koordlet scheduler" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("spec", "expires"),
    [
        ({"ttl": "24h"}, "2026-01-02T03:00:00Z"),
        ({"ttl": "24h", "expires": "2026-05-01T00:00:00Z"}, "2026-05-01T00:00:00Z"),
        ({"ttl": "0"}, ""),
        ({"ttl": "soon"}, ""),
        ({}, ""),
    ],
)
def test_a_reservation_with_a_time_to_live_shows_when_it_expires(
    spec: dict[str, str], expires: str
) -> None:
    """``expires`` has the say before ``ttl``; what cannot be read is shown as it is, in TTL."""
    body = {"metadata": {"name": "r", "creationTimestamp": "2026-01-01T03:00:00Z"}, "spec": spec}
    *_, ttl, shown = table.row(body, now=0.0)
    assert (ttl, shown) == (spec.get("ttl", ""), expires)


def test_get_and_watch(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    """All of them or one, as a table and in JSON; what changes, a line each."""
    for name in ("one", "two"):
        run(capsys, "reserve", name, "--cpus", "1", "--owner", "app=web", "--state-dir", folder)
    where = ["--state-dir", folder]

    bodies = run(capsys, "get", "reservations", *where)["reservations"]
    assert [body["metadata"]["name"] for body in bodies] == ["one", "two"]
    assert cli.main(["get", "reservations", "two", *where]) == 0
    head, row = capsys.readouterr().out.splitlines()
    assert head.split() == ["NAME", "PHASE", "AGE", "NODE", "TTL", "EXPIRES"]
    assert row.split()[:2] == ["two", "Pending"]
    assert cli.main(["watch", "reservations", "two", "--count", "1", *where]) == 0
    assert capsys.readouterr().out.startswith("SET  two  Pending")
    missing = run(capsys, "get", "reservations", "three", *where, status=1)["error"]
    assert missing["code"] == "not_found"
    far = run(capsys, "get", "reservations", "--address", "n1:1", *where, status=2)["error"]
    assert far["culprit"] == "--address"
