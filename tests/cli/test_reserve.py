"""``koordlet reserve``, ``describe`` and ``delete`` against a keeper of reservations."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from koordlet import cli
from tests.kit import reservations, reserving


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[str]:
    """The state directory of one that listens."""
    with reserving.served(tmp_path) as one:
        yield str(one)


def told(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> Any:
    """What a command prints in JSON."""
    assert cli.main([*words, "-o", "json"]) == status
    captured = capsys.readouterr()
    return json.loads(captured.out or captured.err)


def test_reserve_describe_delete(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    """By options; repeated, it is the same one."""
    words = ["reserve", "room", "--cpus", "2", "--owner", "app=web", "--state-dir", folder]
    made = told(capsys, *words)["reservation"]
    assert made["spec"]["owners"] == [{"labelSelector": {"matchLabels": {"app": "web"}}}]
    assert told(capsys, *words)["reservation"]["metadata"]["uid"] == made["metadata"]["uid"]

    described = told(capsys, "describe", "reservation", "room", "--state-dir", folder)
    assert described["timeline"][0]["what"] == "created"
    assert cli.main(["describe", "reservation", "room", "--state-dir", folder]) == 0
    assert "Timeline:" in capsys.readouterr().out

    assert told(capsys, "delete", "reservation", "room", "--state-dir", folder)["deleted"]
    again = ["delete", "reservation", "room", "--state-dir", folder]
    assert told(capsys, *again, status=1)["error"]["code"] == "not_found"
    assert not told(capsys, *again, "--ignore-not-found")["deleted"]


def test_a_file(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The manual's own; NAME must be its name."""
    path = str(reservations.FOLDER / "reservation-demo.yaml")
    words = ["-f", path, "--state-dir", folder]

    assert cli.main(["reserve", "reservation-demo", *words]) == 0
    assert "reservation-demo  Pending" in capsys.readouterr().out
    assert "not 'other'" in told(capsys, "reserve", "other", *words, status=2)["error"]["message"]


def test_for_a_unit_and_for_a_process(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The annotation says whom the node's agent gives the room to; cache ways beside it."""
    words = ["reserve", "db", "--node", "n1", "--cpus", "2", "--cache-ways", "4"]
    unit = [*words, "--owner", "unit=postgres.service", "--state-dir", folder]
    notes = told(capsys, *unit)["reservation"]["metadata"]["annotations"]

    assert notes == {
        "koordlet.io/match": '{"unit":"postgres.service"}',
        "node.koordinator.sh/resctrl": '{"llc":{"ways":4}}',
    }
    gone = ["reserve", "p", "--cpus", "1", "--owner", "pid=0", "--state-dir", folder]
    assert "no process" in told(capsys, *gone, status=2)["error"]["message"]
    assert os.getpid() > 0


@pytest.mark.parametrize(
    ("words", "said"),
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
def test_usage(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What makes no sense is said before anybody is asked."""
    assert cli.main(["reserve", "r", *words]) == 2
    assert said in capsys.readouterr().err


def test_nobody_listens(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The socket and what to do."""
    words = ["delete", "reservation", "r", "--state-dir", str(tmp_path)]

    assert cli.main(words) == 1
    assert "koordlet scheduler" in capsys.readouterr().err


def test_get_and_watch(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    """All of them or one, as a table and in JSON; what changes, a line each."""
    for name in ("one", "two"):
        told(capsys, "reserve", name, "--cpus", "1", "--owner", "app=web", "--state-dir", folder)
    where = ["--state-dir", folder]

    found = told(capsys, "get", "reservations", *where)["reservations"]
    assert [body["metadata"]["name"] for body in found] == ["one", "two"]
    assert cli.main(["get", "reservations", "two", *where]) == 0
    head, row = capsys.readouterr().out.splitlines()
    assert head.split() == ["NAME", "PHASE", "AGE", "NODE", "TTL", "EXPIRES"]
    assert row.split()[:2] == ["two", "Pending"]
    assert cli.main(["watch", "reservations", "two", "--count", "1", *where]) == 0
    assert capsys.readouterr().out.startswith("SET  two  Pending")
    missing = told(capsys, "get", "reservations", "three", *where, status=1)["error"]
    assert missing["code"] == "not_found"
    far = told(capsys, "get", "reservations", "--address", "n1:1", *where, status=2)["error"]
    assert far["culprit"] == "--address"
