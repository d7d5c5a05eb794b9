"""``koordlet sim --deschedule`` and ``koordlet descheduler FILE``: what would go, and why not."""

from __future__ import annotations

import collections
import json
from pathlib import Path
from typing import Any

import pytest

from koordlet import cli
from koordlet.scheduler.descheduling import configuration
from koordlet.scheduler.disruption.settings import DisruptionSettings, LimiterSettings
from koordlet.scheduler.sim.descheduling import DeschedulingSimulation
from tests.kit import descheduling
from tests.kit.descheduling import node, pod

POLICY = descheduling.policy({"RemovePodsHavingTooManyRestarts": {"podRestartThreshold": 5}})


def files(folder: Path, policy: dict[str, Any] = POLICY) -> tuple[str, str]:
    """A dump of two nodes and two workloads, and a configuration."""
    often = {"containerStatuses": descheduling.containers(9)}
    items = [
        *(node("n1"), node("n2")),
        *(pod(f"a{place}", "n1", owner="ReplicaSet/a", status=often) for place in range(2)),
        *(pod("b", "n1", owner="ReplicaSet/b", status=often), pod("calm", "n1")),
    ]
    dump, configuration = folder / "all.json", folder / "policy.json"
    dump.write_text(json.dumps({"kind": "List", "items": items}))
    configuration.write_text(json.dumps(policy))
    return str(dump), str(configuration)


def test_sim_shows_moves_and_what_stops_the_rest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One of two replicas goes at a time; the limiter says so."""
    dump, policy = files(tmp_path)
    assert cli.main(["sim", dump, "--deschedule", policy]) == 0
    text = capsys.readouterr().out
    assert "containers restarted 9 times, at most 4" in text
    assert "default/a1 stays on n1: ControllerRate: " in text
    assert text.splitlines()[-1] == "2 would be evicted, 1 refused"
    assert cli.main(["sim", dump, "--deschedule", policy, "-o", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [move["pod"] for move in document["moves"]] == ["default/a0", "default/b"]


def test_sim_explains_every_check_of_one_pod(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rules of each profile, nodes that it fits, the limiter."""
    strict = descheduling.policy({}, {"minReplicas": 2, "minPodAge": "9h"})
    dump, policy = files(tmp_path, strict)
    assert cli.main(["sim", dump, "--deschedule", policy, "--explain", "b"]) == 0
    text = capsys.readouterr().out
    assert "owner has 1 replicas which is less than minReplicas of 2" in text
    assert "pod age is not older than MinPodAge: 32400 seconds" in text
    assert "  fits n2" in text
    assert cli.main(["sim", dump, "--deschedule", policy, "--explain", "nobody"]) == 2
    assert "no such pod" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--profiles", "profiles.yaml"),
        ("--quota", "changed.yaml"),
        ("--compare", "old.json"),
        ("--add-nodes", "1"),
        ("--without", "n2"),
        ("--scale", "deployment/a=9"),
    ],
)
def test_sim_refuses_by_name_what_a_round_would_not_heed(
    option: str, value: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The answer would be that of another question."""
    dump, policy = files(tmp_path)
    assert cli.main(["sim", dump, "--deschedule", policy, option, value]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert option in printed.err


def test_a_configuration_that_is_none_is_refused_with_its_field(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The file, the path, the name that was probably meant."""
    wrong = descheduling.policy()
    wrong["profiles"][0]["plugins"]["balance"]["enabled"] = ["LowNodeLoads"]
    dump, policy = files(tmp_path, wrong)
    assert cli.main(["sim", dump, "--deschedule", policy]) == 2
    error = capsys.readouterr().err
    assert "profiles[0].plugins.balance.enabled" in error
    assert "did you mean 'LowNodeLoad'?" in error


def test_what_must_be_seen_several_times_is_taken_to_have_been_so_for_long(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A dump shows one moment, and LowNodeLoad wants five."""

    def metric(name: str, cpu: str, **pods: str) -> dict[str, Any]:
        use = {"resources": {"cpu": cpu, "memory": "1Mi"}}
        return {
            "kind": "NodeMetric",
            "metadata": {"name": name},
            "status": {
                "updateTime": descheduling.ago(0),
                "nodeMetric": {"nodeUsage": use, "systemUsage": use},
                "podsMetric": [
                    {"namespace": "default", "name": pod, "podUsage": {"resources": {"cpu": used}}}
                    for pod, used in pods.items()
                ],
            },
        }

    load = {"lowThresholds": {"cpu": 40}, "highThresholds": {"cpu": 65}}
    dump, policy = files(tmp_path, descheduling.policy({"LowNodeLoad": load}))
    items = json.loads(Path(dump).read_text())["items"]
    items += [metric("n1", "100m", a0="700m", b="600m", calm="200m"), metric("n2", "100m")]
    Path(dump).write_text(json.dumps({"kind": "List", "items": items}))
    assert cli.main(["sim", dump, "--deschedule", policy, "-o", "json"]) == 0
    (move,) = json.loads(capsys.readouterr().out)["moves"]
    assert move["reason"] == "node is overutilized, node cpu usage(80.00%)>threshold(65.00%)"
    assert (move["node"], move["target"]) == ("n1", "n2")


def test_what_the_limiter_refuses_costs_no_search() -> None:
    """Of forty pods that are to go the cluster's rate lets ten; the rest is not looked at."""
    often = {"containerStatuses": descheduling.containers(9)}
    bodies = [
        *(node(f"n{row}") for row in range(40)),
        *(pod(f"p{row}", f"n{row}", owner=f"ReplicaSet/{row}", status=often) for row in range(40)),
    ]
    strategies = {
        "RemovePodsHavingTooManyRestarts": {"podRestartThreshold": 5},
        "PodLifeTime": {"maxPodLifeTimeSeconds": 60},
    }
    settings = configuration.read(descheduling.policy(strategies, {"nodeFit": True}), "f")
    searched = descheduling.Searches()
    document = DeschedulingSimulation(
        bodies, settings, descheduling.NOW, served=searched.served()
    ).run()
    assert (len(document["moves"]), searched.number) == (10, 10)
    assert [each["why"].partition(":")[0] for each in document["refused"]] == ["GlobalRate"] * 2
    note = "limit of the whole cluster reached: what else it wants was not looked at"
    assert [each["message"] for each in document["notes"]] == [note] * 2


def test_rehearsals_search_one_place_a_node() -> None:
    """Marks are all that they are for."""
    searched = descheduling.Searches()
    use = {"resources": {"cpu": "1800m", "memory": "1Mi"}}
    several = [f"p{number}" for number in range(8)]
    report = {
        "updateTime": descheduling.ago(0),
        "nodeMetric": {"nodeUsage": use, "systemUsage": {"resources": {}}},
        "podsMetric": [
            {"namespace": "default", "name": name, "podUsage": {"resources": {"cpu": "220m"}}}
            for name in several
        ],
    }
    idle = {**report, "nodeMetric": {"nodeUsage": {"resources": {}}}, "podsMetric": []}
    bodies = [
        *(node("n1"), node("n2"), *(pod(name, "n1") for name in several)),
        *({"kind": "NodeMetric", "metadata": {"name": name}, "status": status}
          for name, status in (("n1", report), ("n2", idle))),
    ]  # fmt: skip
    load = {"lowThresholds": {"cpu": 40}, "highThresholds": {"cpu": 65}}
    settings = configuration.read(descheduling.policy({"LowNodeLoad": load}), "f")
    simulation = DeschedulingSimulation(
        bodies, settings, descheduling.NOW, served=searched.served()
    )
    (run, _) = simulation.run()["strategies"]
    # The fifth rehearsal is the first that finds the node too full often enough.
    assert (run["sources"], run["moved"]) == (1, 1)
    assert searched.number == 1 + run["wanted"]


DAY = 86_400
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
ELSEWHERE = {"key": "zone", "operator": "In", "values": ["b"]}
TAINT = {"taints": [{"key": "old", "effect": "NoSchedule"}]}
#: By strategy its arguments, and what a node and its pods are like that it wants one pod of.
WANTED: dict[str, tuple[dict[str, Any], dict[str, Any], list[dict[str, Any]]]] = {
    "RemovePodsHavingTooManyRestarts": (
        *({"podRestartThreshold": 5}, {}),
        [{"status": {"containerStatuses": descheduling.containers(9)}}],
    ),
    "PodLifeTime": ({"maxPodLifeTimeSeconds": DAY}, {}, [{"age": 2 * DAY}]),
    "RemoveFailedPods": ({}, {}, [{"status": {"phase": "Failed"}, "age": DAY // 2}]),
    "RemovePodsViolatingNodeTaints": ({}, TAINT, [{}]),
    "RemovePodsViolatingNodeAffinity": (
        *({"nodeAffinityType": [REQUIRED]}, {"labels": {"zone": "a"}}),
        [
            {"spec": {"affinity": {"nodeAffinity": {
                REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [ELSEWHERE]}]}}}}}
        ],
    ),
    "RemoveDuplicates": ({}, {}, [{}, {}]),
}  # fmt: skip


def test_each_strategy_finds_its_pods_in_a_larger_dump_and_one_rate_bounds_them_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a hundred nodes three have a pod for each strategy: nobody else is proposed."""
    items = []
    for number in range(100):
        name, strategy = f"n{number}", (*WANTED, *[""] * 40)[number // 3]
        _, more, pods = WANTED.get(strategy, ({}, {}, [{}]))
        items.append(node(name, cpu="8", **{"labels": {"zone": "b"}, **more}))
        items += [
            pod(f"p{number}-{place}", name, owner=f"ReplicaSet/r{number}", **own)
            for place, own in enumerate(pods)
        ]
    strategies = {strategy: arguments for strategy, (arguments, _, _) in WANTED.items()}
    body = descheduling.policy(strategies, {"nodeFit": True})
    free = DisruptionSettings(limiter=LimiterSettings(per_minute=18))
    document = DeschedulingSimulation(
        items, configuration.read(body, "f"), descheduling.NOW, disruption=free
    ).run()
    moves = document["moves"]
    assert collections.Counter(move["strategy"] for move in moves) == dict.fromkeys(WANTED, 3)
    assert {int(move["node"][1:]) for move in moves} == set(range(18))
    assert not document["refused"]
    assert not document["notes"]
    _, policy = files(tmp_path, body)
    dump = tmp_path / "large.json"
    dump.write_text(json.dumps({"kind": "List", "items": items}))
    assert cli.main(["sim", str(dump), "--deschedule", policy]) == 0
    text = capsys.readouterr().out
    # Three strategies have their pods, the fourth one; each of the others asks once.
    assert text.count(": GlobalRate: the cluster may see 10 evictions in 1m") == 3
    assert text.count(": limit of the whole cluster reached: what else it wants was not") == 3
    assert text.splitlines()[-1] == "10 would be evicted, 3 refused"


def test_sim_shows_the_deletion_costs_that_would_be_written_and_spends_no_rate_on_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All pods get theirs, though hardly any may be evicted at once."""
    dump, policy = files(tmp_path, descheduling.policy({"ScaleDownBinPack": {}}))
    assert cli.main(["sim", dump, "--deschedule", policy]) == 0
    text = capsys.readouterr().out
    # Rank 0 is what a pod without a cost has.
    costs = [line.partition(" gets deletion cost ")[2][:1] for line in text.splitlines()[:-1]]
    assert costs == ["1", "2", "3"]
    assert text.splitlines()[-1] == "0 would be evicted, 0 refused"


def test_sim_shows_which_workloads_avoid_a_node(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With what is removed, and that it is only shown."""
    dump, policy = files(tmp_path, descheduling.policy({"PoorService": {}}))
    rejected = {"phase": "Failed", "reason": "OutOfcpu", "startTime": descheduling.ago(60)}
    items = [*json.loads(Path(dump).read_text())["items"]]
    items += [pod(name, "n2", owner="ReplicaSet/r", status=rejected) for name in ("r1", "r2")]
    items += [pod("now", "n1", owner="ReplicaSet/now", age=0)]
    Path(dump).write_text(json.dumps({"kind": "List", "items": items}))
    assert cli.main(["sim", dump, "--deschedule", policy]) == 0
    assert capsys.readouterr().out.splitlines()[0] == (
        "the workload of default/r2 avoids n2 for 30 minutes: 2 pods of ReplicaSet/r were rejected"
        " by its kubelet in ten minutes, the last for OutOfcpu; removed: default/r1, default/r2"
        " (only shown)"
    )
