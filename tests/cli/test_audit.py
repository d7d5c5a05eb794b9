"""The audit log read by the command: filters, damage, and whose fault it is when it cannot be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from koordlet import cli


def record(at: float, **more: object) -> str:
    """One line of the log."""
    body = {"at": at, "verdict": "done", "policy": "shared_pools", "target": "/c/cpuset.cpus"}
    return json.dumps(body | {"was": "0-3", "value": "1", "reason": "the BE pool"} | more) + "\n"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log with its predecessor, of which a line is damaged."""
    folder = tmp_path / "log"
    folder.mkdir()
    (folder / "audit.jsonl.1").write_text(record(100.0, pod="ns/old") + "{half\n")
    (folder / "audit.jsonl").write_text(
        record(200.0, pod="ns/web") + record(300.0, pod="ns/be", policy="resctrl", errno=22)
    )
    return tmp_path


def ask(log: Path, capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    """Ask the log; the pods of the records that answer, newest first."""
    assert cli.main(["audit", "--state-dir", str(log), "-o", "json", *words]) == 0
    document = json.loads(capsys.readouterr().out)
    assert next(iter(document)) == "version"
    return [record["pod"] for record in document["records"]]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), ["ns/be", "ns/web", "ns/old"]),
        (("--limit", "1"), ["ns/be"]),
        (("--since", "150"), ["ns/be", "ns/web"]),
        (("--pod", "ns/web"), ["ns/web"]),
        (("--policy", "shared_pools"), ["ns/web", "ns/old"]),
        (("--since", "1s"), []),
    ],
)
def test_questions(
    log: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], expected: list[str]
) -> None:
    """By time, pod and policy, across both files, newest first."""
    assert ask(log, capsys, *words) == expected


def test_the_table_for_people(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """When, what, which pod and why; what is damaged is said."""
    assert cli.main(["audit", "--state-dir", str(log)]) == 0
    lines = capsys.readouterr().out.splitlines()

    assert lines[0].split() == ["WHEN", "VERDICT", "POLICY", "POD", "FILE", "WAS", "VALUE", "WHY"]
    assert "1970-01-01 00:05:00" in lines[1]
    assert lines[1].endswith("the BE pool")
    assert lines[-1] == "1 damaged lines are left out"


def test_a_place_without_a_log_has_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No agent ever ran: said with the place, and no error."""
    assert cli.main(["audit", "--state-dir", str(tmp_path)]) == 0
    assert str(tmp_path) in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "culprit"), [(("--since", "soon"), "--since"), (("--limit", "0"), "--limit")]
)
def test_questions_that_make_no_sense(
    log: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], culprit: str
) -> None:
    """A usage error that names the option and the fix."""
    assert cli.main(["audit", "--state-dir", str(log), "-o", "json", *words]) == 2
    error = json.loads(capsys.readouterr().err)["error"]

    assert culprit == error["culprit"]
    assert error["fix"]


def test_a_log_that_may_not_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What stands in its place is named."""
    (tmp_path / "log" / "audit.jsonl").mkdir(parents=True)

    assert cli.main(["audit", "--state-dir", str(tmp_path)]) == 1
    assert "audit.jsonl" in capsys.readouterr().err
