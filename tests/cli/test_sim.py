"""``koordlet sim``: one document, a table, a picture; errors that name the culprit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from koordlet import cli
from tests.kit import devices, gangs, numa
from tests.kit.clusters import node, pod


@pytest.fixture
def objects(tmp_path: Path) -> str:
    """A file with a node and two pods."""
    path = tmp_path / "all.json"
    path.write_text(
        json.dumps({"kind": "List", "items": [node("a"), pod("p", cpu="1"), pod("q", cpu="9")]})
    )
    return str(path)


def test_document(objects: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The contract's keys, ``version`` first; pending pods are no failure."""
    assert cli.main(["sim", objects, "-o", "json"]) == 0
    document = json.loads(capsys.readouterr().out)

    parts = ["placements", "pending", "preemptions", "reservations", "gangs", "quotas"]
    assert list(document) == ["version", *parts, "colocated", "summary"]
    assert document["placements"][0]["node"] == "a"
    assert "scores" not in document["placements"][0]


def test_table_and_picture(objects: str, capsys: pytest.CaptureFixture[str]) -> None:
    """For people: a line a pod; bars."""
    assert cli.main(["sim", objects]) == 0
    table = capsys.readouterr().out
    assert table.startswith("1 placed, 1 pending, 0 preemptions on 1 nodes\n  1 pending: 0/1 nodes")
    assert cli.main(["sim", objects, "-o", "svg"]) == 0
    assert capsys.readouterr().out.startswith("<svg")


def test_the_table_names_devices_where_anybody_gets_some(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By type and minor; without any there is no such column."""
    path = tmp_path / "all.json"
    joint = {"deviceTypes": ["gpu", "rdma"], "requiredScope": "SamePCIe"}
    pods = [devices.wishing("a", 4, 1, joint=joint), pod("b")]
    path.write_text(json.dumps({"kind": "List", "items": [node("n"), devices.server("n"), *pods]}))

    assert cli.main(["sim", str(path)]) == 0
    _, (head, first, second) = (part.splitlines() for part in capsys.readouterr().out.split("\n\n"))
    assert head.split()[-1] == "DEVICES"
    assert first.split() == ["d/a", "n", "gpu=0,1,2,3", "rdma=0,1"]
    assert second.split() == ["d/b", "n"]


def test_explain_says_which_devices_and_numa_nodes_a_pod_would_get(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """On each feasible node, by the plugin that chooses them."""
    path = tmp_path / "all.json"
    policy = {"node.koordinator.sh/numa-topology-policy": "SingleNUMANode"}
    busy = devices.taken("x", "gpu", 0, 1, 2, 3)
    several = [numa.machine("n", labels=policy), numa.topology("n"), devices.server("n"), busy]
    pods = [devices.wishing("a", 2, 1), pod("b", cpu="1")]
    path.write_text(json.dumps({"kind": "List", "items": [*several, *pods]}))

    assert cli.main(["sim", str(path), "--explain", "d/a"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[3:5] == [
        "    gets of NodeNUMAResource: nodes=1",
        "    gets of DeviceShare: gpu=4,5 rdma=2",
    ]


def test_items_that_cannot_be_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One without a name, one that is no object: each costs itself, with one line on stderr."""
    nameless = pod("x")
    del nameless["metadata"]["name"]
    path = tmp_path / "all.json"
    path.write_text(json.dumps({"kind": "List", "items": [node("a"), 7, nameless, pod("p")]}))

    assert cli.main(["sim", str(path)]) == 0
    printed = capsys.readouterr()
    assert "1 placed, 1 pending" in printed.out
    no_object, no_name = printed.err.splitlines()
    assert no_object.endswith("all.json: document 1: items[1]: not an object; it is ignored")
    assert no_name.endswith("without a name is ignored: metadata.name is missing")


def test_kinds_that_are_not_read_are_told_with_what_they_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where that is known; else by their names alone."""
    several = [("ResourceQuota", "a"), ("ResourceQuota", "b"), ("Recommendation", "c")]
    unread = [{"kind": kind, "metadata": {"name": name}} for kind, name in several]
    path = tmp_path / "all.json"
    path.write_text(json.dumps({"kind": "List", "items": [node("a"), *unread]}))

    assert cli.main(["sim", str(path)]) == 0
    assert capsys.readouterr().err.splitlines() == [
        "koordlet: 2 objects of kind ResourceQuota are ignored: the kind bounds new pods",
        "koordlet: 1 object of kind Recommendation is ignored",
    ]


def test_explain(objects: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Why a node is refused, by plugin."""
    assert cli.main(["sim", objects, "--explain", "d/q"]) == 0

    text = capsys.readouterr().out
    assert "0 of 1 nodes fit" in text
    assert "✗ 1 refused by NodeResourcesFit: Insufficient cpu (a)" in text


def test_an_explanation_begins_with_the_best_nodes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As many as are asked for; what is left out is counted; refusals are grouped by reason."""
    path = tmp_path / "all.json"
    nodes = [node(f"n{n}", cpu=str(n)) for n in range(1, 7)]
    path.write_text(json.dumps({"kind": "List", "items": [*nodes, pod("p", cpu="3")]}))

    assert cli.main(["sim", str(path), "--explain", "d/p", "--top", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    fitting = [line.split(":") for line in lines if line.startswith("  n")]
    assert [name.strip() for name, _ in fitting] == ["n6", "n5"]
    assert int(fitting[0][1]) > int(fitting[1][1])
    assert lines[1] == "  4 of 6 nodes fit"
    assert "  and 2 more that fit: --top 4" in lines
    assert lines[-1] == "  ✗ 2 refused by NodeResourcesFit: Insufficient cpu (n1, n2)"


def test_what_if(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Beside the cluster as it is: summaries of both, and which pods are elsewhere."""
    path = tmp_path / "all.json"
    owner = {"kind": "ReplicaSet", "name": "web-7f9", "controller": True}
    several = [
        pod(f"web-{n}", cpu="3", meta={"namespace": "d", "ownerReferences": [owner]})
        for n in range(2)
    ]
    path.write_text(json.dumps({"kind": "List", "items": [node("a"), *several]}))

    assert cli.main(["sim", str(path), "--add-nodes", "1", "-o", "json"]) == 0
    comparison = json.loads(capsys.readouterr().out)["comparison"]
    assert comparison["pods"] == [{"pod": "d/web-1", "before": None, "after": "a-new-1"}]
    assert [comparison[word]["nodes"]["all"] for word in ("before", "after")] == [1, 2]
    words = ["--scale", "deployment/d/web=4", "--add-nodes", "2", "--like", "a"]
    assert cli.main(["sim", str(path), *words]) == 0
    table = capsys.readouterr().out
    assert "pending" in table
    assert "2 placed now: d/web-1, d/web-new-1" in table
    assert cli.main(["sim", str(path), "--without", "b"]) == 2
    assert "there is no such node" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        cli.main(["sim", str(path), "--scale", "web=4"])
    assert "deployment/[NAMESPACE/]NAME=N, not 'web=4'" in capsys.readouterr().err


def test_profiles_change_pending_pods_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each by itself; a pod with a node stays, and a profile with a fault is named."""
    room = {"cpu": "1", "pods": "9", "kubernetes.io/batch-cpu": "4000"}
    scene, profiles = tmp_path / "all.json", tmp_path / "profiles.json"
    pods = pod("there", cpu="1", on="a"), pod("new", cpu="3")
    bodies = [node("a", allocatable=room), *pods, {"kind": "Namespace", "metadata": {"name": "d"}}]
    scene.write_text(json.dumps({"kind": "List", "items": bodies}))
    specs = {"a": {"qosClass": "BE"}, "b": {"qosClass": "?"}, "c": {"probability": 0}}
    several = [
        {"kind": "ClusterColocationProfile", "metadata": {"name": name}, "spec": spec}
        for name, spec in specs.items()
    ]
    profiles.write_text(json.dumps({"kind": "List", "items": several}))

    assert cli.main(["sim", str(scene)]) == 0
    assert capsys.readouterr().out.startswith("0 placed, 1 pending")
    assert cli.main(["sim", str(scene), "--profiles", str(profiles)]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("1 placed, 0 pending")
    assert "  1 changed by ClusterColocationProfile a (d/new)\n" in printed.out
    assert "ClusterColocationProfile b is left out: spec.qosClass: expected one of" in printed.err
    assert cli.main(["sim", str(scene), "--profiles", str(profiles), "-o", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["colocated"] == [{"pod": "d/new", "profiles": ["a"]}]
    assert cli.main(["sim", str(scene), "--profiles", str(scene)]) == 2
    assert f"{scene}: there is no ClusterColocationProfile in it" in capsys.readouterr().err


def test_an_earlier_result_is_compared(
    objects: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By its summary and places; a file that is none is named with its fix."""
    assert cli.main(["sim", objects, "-o", "json"]) == 0
    earlier = tmp_path / "old.json"
    earlier.write_text(capsys.readouterr().out)

    assert cli.main(["sim", objects, "--compare", str(earlier)]) == 0
    assert "no pod is elsewhere" in capsys.readouterr().out
    assert cli.main(["sim", objects, "--compare", objects]) == 2
    assert "make it with `koordlet sim … -o json`" in capsys.readouterr().err


@pytest.mark.parametrize(
    "content",
    ['{"summary": 1}', '{"summary": {}, "placements": 3}', "[]", "{", "[" * 10_000, "\udcff"],
)
def test_a_file_that_is_no_earlier_result_is_named_with_its_fix(
    content: str, objects: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever is in it; exit 2."""
    earlier = tmp_path / "old.json"
    earlier.write_bytes(content.encode(errors="surrogateescape"))

    assert cli.main(["sim", objects, "--compare", str(earlier)]) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith(f"koordlet: {earlier}: ")
    assert error.endswith("(make it with `koordlet sim … -o json`)")


@pytest.mark.parametrize("now", ["9" * 20, "9" * 400, "yesterday", "9999-12-31T23:59:59-14:00"])
def test_a_now_that_no_object_can_name_is_refused(
    now: str, objects: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Reservations would be judged at it, and their conditions would say so."""
    with pytest.raises(SystemExit, match="2"):
        cli.main(["sim", objects, "--now", now])
    assert "argument --now: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "culprit"),
    [
        (["--like", "n"], "--like"),
        (["--quota", "none.yaml", "--add-nodes", "1"], "--add-nodes"),
        (["--quota", "none.yaml", "--explain", "d/p"], "--explain"),
    ],
)
def test_an_option_without_effect_is_refused(
    words: list[str], culprit: str, objects: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever gives it expects one; what to do is said."""
    assert cli.main(["sim", objects, *words]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"koordlet: {culprit}: ")
    assert "(add --add-nodes N)" in error or "(simulate one without the other)" in error


def test_yaml_documents(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Several documents of YAML are read as well."""
    path = tmp_path / "all.yaml"
    path.write_text(f"{json.dumps(node('a'))}\n---\n{json.dumps(pod('p'))}\n")

    assert cli.main(["sim", str(path), "-o", "json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["placements"]) == 1


def test_usage(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Nothing to do, no such file, no such pod: status 2 and a culprit."""
    assert cli.main(["sim"]) == 2
    assert cli.main(["sim", str(tmp_path / "none")]) == 2
    assert cli.main(["sim", "--nodes", "1", "--explain", "x"]) == 2
    assert "default/x" in capsys.readouterr().err


def test_metrics_are_judged_at_their_own_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without --now it is the newest time that any object tells, a NodeMetric's included."""
    use = {"nodeUsage": {"resources": {"cpu": "100m", "memory": "1Gi"}}}
    report = {
        "kind": "NodeMetric",
        "metadata": {"name": "a"},
        "status": {"updateTime": "2026-01-01T00:10:00Z", "nodeMetric": use},
    }
    path = tmp_path / "all.json"
    items = [node("a"), pod("p", cpu="1"), report]
    path.write_text(json.dumps({"kind": "List", "items": items}))

    assert cli.main(["sim", str(path)]) == 0
    assert "1 placed, 0 pending" in capsys.readouterr().out


def test_each_gang_is_a_row_that_says_why_it_waits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """How many of its minimum are placed, and the first member that does not fit."""
    pods = [gangs.member(name, "whole", 2, cpu="1") for name in ("a", "b")]
    pods += [
        gangs.member("c", "half", 2, cpu="1"),
        gangs.member("d", "half", 2, nodeSelector={"a": "b"}),
    ]
    notes = {"mode": "Perhaps"}
    items = [node("n", cpu="4"), *pods, gangs.pod_group("late", 2, **notes)]
    items.append(gangs.labelled("e", "late"))
    path = tmp_path / "all.json"
    path.write_text(json.dumps({"kind": "List", "items": items}))

    assert cli.main(["sim", str(path)]) == 0
    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    start = next(place for place, line in enumerate(lines) if line.startswith("GANG"))
    head, *rows = lines[start : start + 4]
    assert head.split() == [
        *("GANG", "PLACED/MIN", "PODS", "PHASE", "SINCE", "GROUP", "WAITS", "FOR"),
    ]
    half, late, whole = (row.split(maxsplit=6) for row in rows)
    assert half[:4] == ["d/half", "0/2", "2", "Scheduling"]
    assert half[6].startswith("d/d: 0/1 nodes are available: 1 node(s) didn't match")
    assert late[:4] == ["d/late", "0/2", "1", "Pending"]
    assert "child pod not collect enough" in late[6]
    assert whole == ["d/whole", "2/2", "2", "Scheduled", *"---"]
    assert "expected Strict or NonStrict, found 'Perhaps'" in printed.err

    assert cli.main(["sim", str(path), "--explain", "d/late"]) == 0
    explained = capsys.readouterr().out.splitlines()
    assert explained[0] == "Name:      d/late"
    assert "Would run: with 1 more pod of d/late" in explained
    assert explained[-1].startswith("d/e  -     gangGroup [d/late] basic check")

    assert cli.main(["sim", str(path), "-o", "json"]) == 0
    documents = json.loads(capsys.readouterr().out)["gangs"]
    assert [(row["gang"], row["member"]) for row in documents] == [
        ("d/half", "d/d"),
        ("d/late", "d/e"),
        ("d/whole", None),
    ]
