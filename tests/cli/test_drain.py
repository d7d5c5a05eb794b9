"""``koordlet drain``, ``evict`` and ``explain plan`` of files: what would be done, and why not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from koordlet import cli
from tests.kit import clusters, gangs
from tests.kit.descheduling import ago, node, pod

Body = dict[str, Any]
RATE: Body = {
    "kind": "DisruptionRate",
    "metadata": {"name": "all", "namespace": "default"},
    "spec": {"selector": {"matchLabels": {}}, "limits": [{"count": 1, "window": "1h"}]},
}
CLUSTER = (
    *(node(name, cpu="4") for name in "abc"),
    *(pod(f"a{place}", "a", cpu="1", age=0) for place in range(3)),
    *(pod(f"b{place}", "b", cpu="1500m") for place in range(2)),
    pod("c0", "c", cpu="2"),
    clusters.pod("big", cpu="2500m"),
)


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs a command over a cluster in a file; status, stdout and stderr."""

    def run_command(*words: str, extra: tuple[Body, ...] = ()) -> tuple[int, str, str]:
        path = tmp_path / "all.json"
        path.write_text(json.dumps({"kind": "List", "items": [*CLUSTER, *extra]}))
        status = cli.main([str(path) if word == "FILE" else word for word in words])
        out, err = capsys.readouterr()
        return status, out, err

    return run_command


def test_a_drain_of_a_file_is_its_calendar(run: Any) -> None:
    """When each pod can go, and where to; the newest time in the file is now."""
    status, out, err = run("drain", "a", "FILE", extra=(RATE,))
    assert (status, err) == (0, "")
    head, *rows, last = out.splitlines()
    assert head.split()[:3] == ["AFTER", "POD", "TO"]
    assert [row.split()[:3] for row in rows] == [
        ["0:00:00", "default/a0", "c"],
        ["1:00:00", "default/a1", "b"],
        ["2:00:00", "default/a2", "c"],
    ]
    assert "RateSpent: DisruptionRate default/all allows 1 in 1h" in rows[1]
    assert last == f"a is empty from {ago(-7200)}"
    _, out, _ = run("drain", "a", "FILE", "-o", "json", extra=(RATE,))
    document = json.loads(out)
    assert (document["version"], document["empty"], document["began"]) == ("v1", True, ago(0))
    assert [row["afterSeconds"] for row in document["departures"]] == [0.0, 3600.0, 7200.0]


def test_what_blocks_a_drain_is_named_and_the_status_says_it(run: Any) -> None:
    """Exit 1; a rate that cannot be read is a warning."""
    broken = {**RATE, "spec": {"limits": 3}}
    bare = pod("bare", "a", owner="")
    status, out, err = run("drain", "a", "FILE", extra=(bare, broken))
    assert status == 1
    assert "default/bare blocks: Protected: default/bare is not evicted: nobody would" in out
    assert out.splitlines()[-1] == "a is not emptied: 1 pod stays"
    assert err.startswith("koordlet: DisruptionRate default/all is ignored: spec.limits: ")


def test_an_eviction_of_a_file_says_whether_why_not_and_where_to(run: Any) -> None:
    """Exit 1 where the pod stays."""
    status, out, _ = run("evict", "default/a0", "FILE")
    words = "default/a0 on a may be evicted now; its replacement would go to c\n"
    assert (status, out) == (0, words)
    closed = {**RATE, "spec": {**RATE["spec"], "limits": [{"count": 0, "window": "1h"}]}}
    status, out, _ = run("evict", "a0", "FILE", extra=(closed,))
    assert status == 1
    assert out.startswith("default/a0 on a stays: RateSpent: DisruptionRate default/all allows 0")


def test_a_plan_is_shown_with_its_proof(run: Any) -> None:
    """Each move, its room, the end; without a plan the reason, and exit 1."""
    status, out, _ = run("explain", "plan", "d/big", "FILE")
    assert status == 0
    assert out.splitlines()[1].split() == ["1", "default/b0", "b", "c", "1.542", "-"]
    assert "1. c has cpu 2 free, and default/b0 asks for cpu 1500m: room is held there" in out
    *_, end, _, command = map(str.strip, out.splitlines())
    assert end == "in the end b has cpu 2500m free, and d/big asks for cpu 2500m"
    assert command == "koordlet reschedule d/big --wait"
    # The pod would fit on c, too, which has room for 2 CPUs already and is to keep it.
    status, out, _ = run("explain", "plan", "cpu=2", "FILE")
    assert (status, out.splitlines()[1].split()[1:4]) == (0, ["default/a0", "a", "b"])
    assert "node a for cpu=2: 0.25 of it freed" in out
    assert "in the end a has cpu 2 free, and headroom/cpu=2 asks for cpu 2" in out
    status, out, _ = run("explain", "plan", "empty-node", "FILE", "-o", "json")
    document = json.loads(out)
    assert (status, document["for"], document["node"], len(document["moves"])) == (0, None, "a", 3)
    status, out, _ = run(
        "explain", "plan", "d/huge", "FILE", extra=(clusters.pod("huge", cpu="64"),)
    )
    assert status == 1
    assert out == "no move helps d/huge: 0/3 nodes are available: 3 Insufficient cpu.\n"


def test_a_plan_for_a_gang_that_waits_names_each_member_and_why_it_is_for_all(run: Any) -> None:
    """One fits as it is; its place is held with the room of those who move."""
    rack = {"rack": "r1"}
    extra = (
        node("f", cpu="4", labels=rack),
        node("g", cpu="4", labels=rack),
        pod("g0", "g", cpu="2"),
        gangs.own_group("train", 2, schedulingConstraints={"topology": [{"key": "rack"}]}),
        *(gangs.own(f"train-{n}", "train", cpu="4") for n in range(2)),
    )
    status, out, _ = run("explain", "plan", "d/train-0", "FILE", extra=extra)
    assert status == 0
    assert out.splitlines()[1].split()[1:4] == ["default/g0", "g", "c"]
    assert "node f for d/train-0: 0.00 of it freed, at a cost of" in out
    assert "\nnode g for d/train-1\nWhy it is safe:\n" in out
    assert "in the end f has cpu 4 free, and d/train-0 asks for cpu 4\n" in out
    assert "in the end g has cpu 4 free, and d/train-1 asks for cpu 4\n" in out
    assert (
        "gang d/train needs 2 members on nodes and has 0: room for all 2 is held before anybody"
        " leaves, within rack=r1, and none is kept for a part of them\n"
    ) in out
    _, out, _ = run("explain", "plan", "d/train-1", "FILE", "-o", "json", extra=extra)
    assert json.loads(out)["members"] == [{"pod": "d/train-0", "node": "g"}]
    _, out, _ = run("explain", "plan", "d/big", "FILE", "-o", "json")
    assert json.loads(out)["members"] == []


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("drain", "z", "FILE"), "z: no such node"),
        (("drain", "", "--kubeconfig", "x"), "NODE: has no name"),
        (("drain", "a", "FILE", "--kubeconfig", "x"), "whose cluster? (name FILE"),
        (("drain", "a", "FILE", "--undo"), "--undo: uncordons a node (leave out FILE"),
        (("drain", "a", "--undo", "--dry-run", "--kubeconfig", "x"), "--undo: uncordons"),
        (("evict", "z", "FILE"), "default/z: no such pod has a node"),
        (("explain", "plan", "cpus=1", "FILE"), "cpus=1: 'cpus' is no resource"),
        (("explain", "plan", "cpu=1,memory", "FILE"), "cpu=1,memory: size.memory: "),
        (("explain", "plan", "z", "FILE"), "default/z: no such pod waits for a node"),
    ],
)
def test_bad_words_are_named(run: Any, words: tuple[str, ...], error: str) -> None:
    """Culprit and fix, exit 2."""
    status, out, err = run(*words)
    assert (status, out) == (2, "")
    assert err.startswith(f"koordlet: {error}")


@pytest.mark.parametrize(
    "words", [("drain", "a", "FILE", "--ready-after"), ("evict", "a0", "FILE", "--timeout")]
)
def test_a_time_that_never_comes_is_refused(run: Any, words: tuple[str, ...]) -> None:
    """NaN is less than nothing and more than nothing."""
    with pytest.raises(SystemExit, match="2"):
        run(*words, "nan")


@pytest.mark.parametrize("text", ["soon", "30s", "25h"])
def test_a_time_for_which_no_node_can_be_avoided_is_refused(run: Any, text: str) -> None:
    """As long as an entry of an avoid list may last."""
    with pytest.raises(SystemExit, match="2"):
        run("evict", "a0", "FILE", "--avoid", text)


@pytest.mark.parametrize(
    "words",
    [
        ("drain", "a"),
        ("drain", "a", "--undo"),
        ("drain", "a", "--dry-run"),
        ("evict", "a0"),
        ("evict", "a0", "--dry-run"),
    ],
)
def test_without_a_cluster_the_standalone_scheduler_is_asked(
    run: Any, tmp_path: Path, words: tuple[str, ...]
) -> None:
    """Where none listens, the fix says how to start one."""
    status, out, err = run(*words, "--state-dir", str(tmp_path))
    assert (status, out) == (1, "")
    assert "no scheduler listens on this socket (start one: koordlet scheduler" in err
