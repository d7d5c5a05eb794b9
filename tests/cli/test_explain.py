"""``koordlet explain``: whose a CPU is, and why a pod runs where it runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from koordlet import cli
from koordlet.cli import explain_pod
from tests.kit import machines

CONFIG = """\
apiVersion: koordlet.io/v1
kind: Config
policies: {reserved_cpus: {cpus: "0"}}
workloads:
  - {name: db, qos: LSE, cpus: "1,9", match: {cgroup: db}}
  - {name: web, qos: LS, match: {cgroup: web}}
  - {name: bad, qos: LSR, cpus: "9", match: {cgroup: bad}}
"""


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    """A recorded machine of 16 CPUs and a configuration, as options."""
    (tmp_path / "config.yaml").write_text(CONFIG)
    root = tmp_path / "root"
    machines.to_directory(machines.xeon_2s_smt2(), root)
    return ["--root", str(root), "--config", str(tmp_path / "config.yaml")]


def ask(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Run the command; what it prints."""
    assert cli.main(["explain", *words]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("cpu", "parts"),
    [
        ("0", ["CPU 0: reserved", "held by  node", "configuration policies.reserved_cpus.cpus"]),
        ("1", ["CPU 1: LSE", "host/db since", "sibling  CPU 9: LSE host/db", "pools    none"]),
        ("2", ["CPU 2: free", "pools    none", "isolated"]),
        ("3", ["CPU 3: LS", "LS pool of node 0 (3,8,11)"]),
        ("8", ["sibling  CPU 0: reserved node"]),
    ],
)
def test_a_cpu(
    words: list[str], capsys: pytest.CaptureFixture[str], cpu: str, parts: list[str]
) -> None:
    """Owner, holder, why, pools, place, siblings."""
    out = ask(capsys, "cpu", cpu, *words)

    for part in parts:
        assert part in out


def test_a_cpu_as_json(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """One document, version first, and the numbers of the machine."""
    document = json.loads(ask(capsys, "cpu", "1", *words, "-o", "json"))

    assert next(iter(document)) == "version"
    assert (document["owner"], document["holder"], document["node"]) == ("LSE", "host/db", 0)


def test_a_pod(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """What it holds, what each policy says of it, what is wrong."""
    db, bad = (ask(capsys, "pod", f"host/{name}", *words) for name in ("db", "bad"))

    assert "holds      CPUs 1,9 alone" in db
    assert "shared_pools: LSE host/db: its exclusive CPUs" in db
    assert "nothing is wrong" in db
    assert "! ExclusiveCPUsRefused: CPUs 9: 9 belong to another exclusive workload" in bad
    document = json.loads(ask(capsys, "pod", "host/db", *words, "-o", "json"))
    assert document["holds"]["cpus"] == "1,9"


@pytest.mark.parametrize(
    ("question", "culprit", "fix"),
    [
        (["cpu", "99"], "CPU 99", "it has 0-15"),
        (["pod", "host/nobody"], "host/nobody", "one of: host/bad, host/db, host/web"),
    ],
)
def test_what_is_not_there(
    words: list[str],
    capsys: pytest.CaptureFixture[str],
    question: list[str],
    culprit: str,
    fix: str,
) -> None:
    """The error names the culprit and what there is."""
    assert cli.main(["explain", *question, *words]) == 2
    error = capsys.readouterr().err

    assert culprit in error
    assert fix in error


def test_owners_are_colours(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """The picture of the machine has a class for the owner of each CPU, if that is asked for."""
    assert cli.main(["topology", "-o", "svg", "--owners", *words]) == 0
    coloured = capsys.readouterr().out
    assert cli.main(["topology", "-o", "svg", *words]) == 0
    plain = capsys.readouterr().out

    assert {f"owner-{word}" in coloured for word in ("reserved", "lse", "ls")} == {True}
    assert "owner-" not in plain.replace(".owner-", "")


@pytest.mark.parametrize(
    ("resize", "line"),
    [
        ("Deferred", "  resize     Deferred: the kubelet tries again as pods leave;"),
        (
            "Infeasible",
            "  resize     Infeasible: the node can never hold it, nobody tries again;",
        ),
        ("InProgress", "  resize     InProgress: what is larger, old or new, counts"),
        (None, None),
    ],
)
def test_resize_of_a_pod_is_told_with_what_counts_meanwhile(
    resize: str | None, line: str | None
) -> None:
    """The kubelet's condition PodResizePending; nothing is said where there is none."""
    lines = list(explain_pod.lines({"namespace": "d", "name": "p", "resize": resize}))
    starts = [row[: len(line or row)] for row in lines if "resize" in row]
    assert starts == ([line] if line else [])
