"""The kubelet's checkpoints are believed only with their checksum."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordlet.model import cpuset, kubelet
from koordlet.workloads.kubelet import manager_states
from tests.kit.kubelet import server

CPU = (server.FIXTURES / manager_states.CPU_STATE).read_text()
MEMORY = (server.FIXTURES / manager_states.MEMORY_STATE).read_text()
POD = "0b6a7f0e-6a1e-4c1f-9f3f-000000000005"


def test_checksums_that_kubelets_have_computed() -> None:
    """Three files of the kubelet's own tests and documentation."""
    entries = {"pod": {"container1": "4-6", "container2": "1-3"}}
    table = dict(zip(manager_states._TABLE, (2048, 512, 1536, 512, 1024), strict=True))
    node = manager_states.NodeMemory(assignments=0, memory={"memory": table}, cells=())
    block = kubelet.MemoryBlock(nodes=(0,), type="memory", size=512)

    assert manager_states.fnv1a(manager_states.cpu_dump("none", "4-6", {})) == 354655845
    assert manager_states.fnv1a(manager_states.cpu_dump("none", "1-3", entries)) == 3610638499
    assert (
        manager_states.fnv1a(
            manager_states.memory_dump("static", {0: node}, {"pod": {"container1": (block,)}})
        )
        == 4215593881
    )


def test_what_is_held() -> None:
    """CPUs and memory of each container."""
    cpu, memory = manager_states.cpus(CPU), manager_states.memory(MEMORY)

    assert (cpu.policy, str(cpu.default)) == ("static", "0,2-7")
    assert cpuset.CPUSet.parse("1") == cpu.of_pod(POD)
    assert cpu.of_pod("other") is None
    assert {"nginx": (kubelet.MemoryBlock(nodes=(0,), type="memory", size=1 << 30),)} == (
        memory.entries[POD]
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        CPU[:-20],
        CPU.replace('"1"', '"2"'),
        '{"policyName":"static","entries":{"container":"1"}}',
        '{"policyName":"static","entries":{"pod":{"c":"3-1"}}}',
        '{"policyName":"static","checksum":-1}',
        '{"policyName":"static","checksum":"1"}',
    ],
)
def test_a_half_written_or_damaged_file_is_refused(text: str) -> None:
    """As a whole: what it leaves out would look free."""
    with pytest.raises(ValueError, match=r".+"):
        manager_states.cpus(text)


def test_older_spelling_and_no_checksum_are_accepted() -> None:
    """As the kubelet accepts them."""
    state = manager_states.cpus('{"policyName":"none","defaultCPUSet":"0-3"}')

    assert cpuset.CPUSet.parse("0-3") == state.default


def test_files_of_a_kubelet_that_may_hold_for_whole_pods_and_holds_nothing() -> None:
    """Written by kubelet 1.36.2 with PodLevelResourceManagers: only their checksums show that."""
    text = '{"policyName":"static","defaultCpuSet":"0-1","checksum":653018852}'
    nothing = dict.fromkeys(("total", "systemReserved", "allocatable", "reserved", "free"), 0)
    amounts = {"total": 17945096192, "systemReserved": 314572800, "allocatable": 17630523392}
    table = {"hugepages-1Gi": nothing, "hugepages-2Mi": nothing}
    table["memory"] = {**nothing, **amounts, "free": 17630523392}
    node = {"numberOfAssignments": 0, "memoryMap": table, "cells": [0]}
    body = {"policyName": "Static", "machineState": {"0": node}, "checksum": 1671294360}

    assert manager_states.cpus(text).policy == "static"
    assert manager_states.memory(json.dumps(body)).policy == "Static"
    for damaged in (text.replace("0-1", "0-2"), text.replace("static", "none")):
        with pytest.raises(ValueError, match="checksum"):
            manager_states.cpus(damaged)


def test_what_whole_pods_hold() -> None:
    """The later format names it beside the containers, which have theirs of it."""
    state = manager_states.cpus('{"policyName":"static","podEntries":{"u":{"cpuSet":"4-5"}}}')
    blocks = [{"numaAffinity": [0], "type": "memory", "size": 512}]
    memory = manager_states.memory(
        json.dumps(
            {
                "policyName": "Static",
                "entries": {"u": {"c": blocks}, "other": {"c": blocks}},
                "podEntries": {"u": {"memoryBlocks": [{**blocks[0], "size": 1024}]}},
                "checksum": 1,
            }
        )
    )

    assert cpuset.CPUSet.parse("4-5") == state.of_pod("u")
    sizes = {uid: [b.size for bs in of.values() for b in bs] for uid, of in memory.entries.items()}
    assert sizes == {"u": [1024], "other": [512]}


def test_a_text_with_a_checksum_of_its_own_counts_in_place_of_what_is_beside_it() -> None:
    """As later kubelets read their files; this one and its checksum are of the kubelet's tests."""
    table = dict(zip(manager_states._TABLE.values(), (2048, 512, 1536, 512, 1024), strict=True))
    blocks = [{"numaAffinity": [0], "type": "memory", "size": 512}]
    node = {"numberOfAssignments": 0, "memoryMap": {"memory": table}, "cells": []}
    inner = {
        "policyName": "static",
        "machineState": {"0": node},
        "entries": {"pod": {"container1": blocks}},
        "podEntries": {"pod": {"memoryBlocks": blocks}},
    }
    text = json.dumps(inner, separators=(",", ":"))
    body = {"policyName": "other", "entries": {"pod": {"containerX": blocks}}, "checksum": 1234}

    state = manager_states.memory(json.dumps({**body, "data": text, "dataChecksum": 637296054}))

    assert state.policy == "static"
    assert list(state.entries["pod"]) == [""]
    for damaged in ({"dataChecksum": 637296055}, {}, {"dataChecksum": 0}):
        with pytest.raises(ValueError, match="checksum"):
            manager_states.memory(json.dumps({**body, "data": text, **damaged}))


def test_the_text_of_a_later_kubelet_names_the_cpus() -> None:
    """What is beside it has no checksum there."""
    text = '{"policyName":"static","defaultCpuSet":"0-1","podEntries":{"u":{"cpuSet":"4-5"}}}'
    body = {"policyName": "static", "defaultCpuSet": "0-5", "checksum": 0, "data": text}
    checksum = manager_states.fnv1a(f"(string){text}")

    state = manager_states.cpus(json.dumps({**body, "dataChecksum": checksum}))

    assert cpuset.CPUSet.parse("4-5") == state.of_pod("u")
    assert str(state.default) == "0-1"
    with pytest.raises(ValueError, match="checksum"):
        manager_states.cpus(json.dumps({**body, "dataChecksum": checksum ^ 1}))


@given(at=st.integers(0, len(MEMORY) - 1), digit=st.integers(0, 9))
def test_no_change_of_a_digit_goes_unseen(at: int, digit: int) -> None:
    """A file with another number is refused, or says the same."""
    changed = MEMORY[:at] + str(digit) + MEMORY[at + 1 :]
    try:
        state = manager_states.memory(changed)
    except ValueError:
        return
    assert manager_states.memory(MEMORY) == state or "checksum" not in json.loads(changed)


def test_a_node_full_of_pods() -> None:
    """A file of more than the 256 KiB that an annotation may have is read as any other."""
    block = {"numaAffinity": [0], "type": "memory", "size": 1 << 30}
    held = {f"{n:036}": {f"container-{m}": [block] for m in range(8)} for n in range(500)}
    text = json.dumps({"policyName": "Static", "entries": held})

    assert len(text) > 256 << 10
    assert len(manager_states.memory(text).entries) == 500
