"""plan, check and restore on recorded machines and empty states: contract, exit, no change."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from koordlet import cli
from koordlet.agent import claim_record
from koordlet.cli import plan as plan_command
from koordlet.model import decision, plan
from koordlet.policy.framework import saved_state
from tests.kit import agents, clusters, prepared_claims
from tests.kit import resctrl as kit_resctrl

_GONE = {"type": "CPUSetNotApplied", "reason": "R", "message": "gone"}
MOUNT = "30 25 0:26 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
FILES = {
    "proc/self/mountinfo": MOUNT,
    "proc/sys/kernel/random/boot_id": "b\n",
    "sys/devices/system/cpu/online": "0-3\n",
    "sys/devices/system/cpu/present": "0-3\n",
    "sys/devices/system/cpu/possible": "0-3\n",
    **{
        f"sys/fs/cgroup/cpuset/{group}{name}": text
        for group in ("", "web/")
        for name, text in {
            "cpuset.cpus": "0-3\n",
            "cpuset.effective_cpus": "0-3\n",
            "cpuset.mems": "0\n",
            "cpuset.effective_mems": "0\n",
        }.items()
    },
}
CONFIG = (
    agents.HEADER
    + """policies: {reserved_cpus: {cpus: "0"}}
workloads:
  - {name: web, qos: LSR, cpus: "2-3", match: {cgroup: web}}
  - {name: gone, qos: BE, match: {cgroup: gone}}
"""
)


@pytest.fixture
def recorded(tmp_path: Path) -> list[str]:
    """Options for a recorded machine with one workload."""
    for path, text in FILES.items():
        place = tmp_path / "root" / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    (tmp_path / "config.yaml").write_text(CONFIG)
    return ["--root", str(tmp_path / "root"), "--config", str(tmp_path / "config.yaml")]


def run_json(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, object]:
    """Run a command; the one document that it prints."""
    assert cli.main([*words, "-o", "json"]) == 0
    document: dict[str, object] = json.loads(capsys.readouterr().out)
    return document


def test_the_plan_for_programs(capsys: pytest.CaptureFixture[str], recorded: list[str]) -> None:
    """The document has the contract's keys, ``version`` first, and says what and why."""
    document = run_json(capsys, "plan", *recorded)
    writes = document["writes"]

    assert next(iter(document)) == "version"
    assert {
        "actions",
        "writes",
        "evictions",
        "signals",
        "conditions",
        "unsupported",
    } <= document.keys()
    assert isinstance(writes, list)
    assert [
        (write["path"], write["value"], write["was"], write["policy"], write["order"])
        for write in writes
    ] == [("/sys/fs/cgroup/cpuset/web/cpuset.cpus", "2-3", "0-3", "shared_pools", 0)]
    assert "LSR host/web" in writes[0]["reason"]


def test_the_plan_is_the_same_twice(
    capsys: pytest.CaptureFixture[str], recorded: list[str]
) -> None:
    """The same machine and configuration give the same bytes."""
    printed = []
    for _ in range(2):
        assert cli.main(["plan", *recorded, "-o", "json"]) == 0
        printed.append(capsys.readouterr().out)

    assert printed[0] == printed[1]


def test_the_plan_for_people(capsys: pytest.CaptureFixture[str], recorded: list[str]) -> None:
    """A person reads who owns what, each change with its reason."""
    assert cli.main(["plan", *recorded]) == 0
    out = capsys.readouterr().out

    for part in ("reserved", "LSR", "LS pool", "0-3 → 2-3", "shared_pools: LSR host/web"):
        assert part in out
    assert [line for line in out.splitlines() if " pool " in line and line.endswith(" ")] == []


def test_nothing_to_write_is_not_all_is_well() -> None:
    """What no write can change is not called right."""
    tables = [
        plan_command.lines(plan.Plan(conditions=(decision.Condition(status=status, **_GONE),)))
        for status in (True, False)
    ]

    assert "Nothing to write; what is wrong is named below." in tables[0]
    assert "Nothing to do: everything is as it should be." in tables[1]


def test_the_plan_is_grouped_by_workload(
    capsys: pytest.CaptureFixture[str], recorded: list[str]
) -> None:
    """What changes for a workload stands below its name, with old and new value and reason."""
    assert cli.main(["plan", *recorded]) == 0
    lines = capsys.readouterr().out.splitlines()
    at = lines.index("host/web:")

    assert lines[at + 1].endswith("cpuset.cpus  0-3 → 2-3")
    assert "its exclusive CPUs" in lines[at + 2]


def test_check(capsys: pytest.CaptureFixture[str], recorded: list[str]) -> None:
    """What works and what is missing; ``--strict`` turns a gap into status 1."""
    document = run_json(capsys, "check", *recorded)

    assert (document["version"], document["cgroups"]) == ("v1", "v1")
    assert document["mode"] == "observe"
    workloads = document["workloads"]
    assert isinstance(workloads, list)
    assert [(workload["workload"], workload["cgroup"]) for workload in workloads] == [
        ("host/web", "web"),
        ("host/gone", None),
    ]
    assert cli.main(["check", "--strict", *recorded]) == 1


def test_check_names_the_row_of_the_cpu_model(
    capsys: pytest.CaptureFixture[str], recorded: list[str]
) -> None:
    """With a table, the ratio and its reason; without one nothing."""
    assert run_json(capsys, "check", *recorded)["ratios"] is None
    with Path(recorded[-1]).open("a") as config:
        config.write("node: {cpuNormalization: {other: 1.25}, amplification: {cpu: 1.5}}\n")

    reason = "unknown model is not in the table: the ratio of other models, 1.25"
    assert run_json(capsys, "check", *recorded)["ratios"] == {
        "normalization": 1.25,
        "amplification": {"cpu": 1.5},
        "reason": reason,
    }
    assert cli.main(["check", *recorded]) == 0
    assert f"cpu ratio     {reason}\n" in capsys.readouterr().out


def test_check_counts_pods_that_the_scheduler_refuses(
    capsys: pytest.CaptureFixture[str], recorded: list[str], tmp_path: Path
) -> None:
    """Before an upgrade: how many pods name a gang in a dialect of nobody; quotas are served."""
    gang = {"scheduling.x-k8s.io/pod-group": "g"}
    bounding = {"kind": "ElasticQuota", "metadata": {"name": "d", "namespace": "d"}}
    several = [bounding, clusters.pod("p"), clusters.pod("q", on="n", labels=gang)]
    where = tmp_path / "all.json"
    where.write_text(json.dumps({"kind": "List", "items": several}))

    document = run_json(capsys, "check", "--pods", str(where), *recorded)
    assert document["refusedByScheduler"] == {"gang": 1}
    assert cli.main(["check", "--pods", str(where), *recorded]) == 0
    assert "pods that name a gang: 1" in capsys.readouterr().out
    assert run_json(capsys, "check", *recorded)["refusedByScheduler"] == {}


def test_nothing_in_the_record_is_changed(recorded: list[str]) -> None:
    """Reading a recorded machine leaves every byte and every name as it was."""
    top = Path(recorded[1])
    before = {path: path.read_bytes() for path in top.rglob("*") if path.is_file()}
    for command in ("plan", "check", "topology"):
        words = recorded if command != "topology" else recorded[:2]
        assert cli.main([command, *words]) == 0

    assert before == {path: path.read_bytes() for path in top.rglob("*") if path.is_file()}


def test_restore_without_anything_to_restore(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Where no agent ever worked, restore does nothing, makes nothing, and ends with 0."""
    state = tmp_path / "state"
    document = run_json(capsys, "restore", "--state-dir", str(state))

    assert document == {"version": "v1", "restored": 0, "left": [], "failed": []}
    assert not state.exists()
    assert cli.main(["restore", "--state-dir", str(state)]) == 0
    assert f"no journal {state}/lib/journal" in capsys.readouterr().err


def test_commands_hold_the_claims_that_an_agent_has_prepared(ram: Path) -> None:
    """From its checkpoint, on the machine that it ran on; a recording has no agent."""
    site = agents.Site(kit_resctrl.machine(), ram / "state")
    claim = prepared_claims.claim("a", prepared_claims.cpus("0-1", 1))
    with site.agent() as agent:
        record = claim_record.DriverRecord(driver="koordlet.cpu", claims=(claim,))
        agent.checkpoints.save("dra_driver", 1, record, saved_state.encode)
    args = argparse.Namespace(state_dir=str(ram / "state"))
    line = site.line()
    held = []
    for live in (False, True):
        site.host.live = live
        plan_command.hold_claims(args, line)
        held.append(line.observation.claims)
    assert held == [(), (claim,)]
