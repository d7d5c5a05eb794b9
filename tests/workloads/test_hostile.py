"""Every source of workloads against the same bad input: it costs itself, and is said in few words.

Covers: one table of doors (what takes bytes that others wrote), one of bad input, each with each.
Does not cover: what a door makes of good input, hanging and refusing servers (their clients'
tests), the configuration file (``tests.config``).

What a door may do with bad input: say a value with problems, or raise ``ValueError`` or an error of
ours. Everything else is a traceback in somebody's log.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from koordlet.kube import decoding
from koordlet.kubeapi import kinds, nodemetric, shapes
from koordlet.model import errors
from koordlet.workloads import (
    manifests,
    nodes,
    nodeslo,
    poddecode,
    reservations,
    sloconfig,
)
from koordlet.workloads.annotations import registry
from koordlet.workloads.kubelet import configz, manager_states, summary
from koordlet.workloads.kubelet import pods as kubelet_pods
from tests.kit import node_slos, pods

FIXTURES = Path(__file__).parents[2] / "fixtures" / "kubelet"
#: What is said of one mistake, at the most; a person reads it.
LONGEST = 700

Door = Callable[[bytes, list[str]], object]


def _with_problems(decode: Callable[[Any], Any]) -> Door:
    """A decoder of an answer whose value has its problems."""

    def door(data: bytes, problems: list[str]) -> object:
        value = decode(shapes.parse_bytes(data))
        problems += value.problems
        return value

    return door


def _object(kind: kinds.Kind, decode: Callable[[Any], Any]) -> Door:
    """An object of the API server, as a list brings it and a mirror converts it."""

    def door(data: bytes, problems: list[str]) -> object:
        listed = b'{"metadata": {"resourceVersion": "1"}, "items": [%s]}' % data
        value = None
        for raw in decoding.split(listed, "test")[1]:
            body = decoding.item(raw, kind, decoding.RepairLog())
            value = None if body is None else decode(body)
            problems += getattr(value, "problems", ())
        return value

    return door


def _manifest(data: bytes, problems: list[str]) -> object:
    collected = manifests.collect(manifests.parse(data.decode(), "file"), "file")
    problems += collected.warnings
    return collected


def _map(body: Any) -> object:
    data = body.get("data")
    return sloconfig.decode(data if isinstance(data, dict) else {}, {})


def _pod(body: Any) -> object:
    return poddecode.from_object(body, "cluster", "Pod")


def _named(body: dict[str, Any]) -> bytes:
    return json.dumps(
        {"metadata": {"name": "n1", "uid": "u", "resourceVersion": "1"}, **body}
    ).encode()


_METRIC = {
    "status": {
        "updateTime": "2026-01-01T00:00:00Z",
        "nodeMetric": {"nodeUsage": {"resources": {"cpu": "1", "memory": "1Gi"}}},
        "podsMetric": [{"name": "a", "namespace": "b", "podUsage": {"resources": {"cpu": "1"}}}],
    }
}
_NODE = {
    "status": {
        "capacity": {"cpu": "8", "memory": "32Gi"},
        "allocatable": {"cpu": "7500m"},
        "conditions": [{"type": "Ready", "status": "True"}],
    }
}
_MAP = {
    "colocation-config": '{"enable": true, "nodeConfigs": [{"nodeSelector": {"a": "b"}}]}',
    "resource-threshold-config": '{"clusterStrategy": {"enable": true}, "nodeStrategies": []}',
    "host-application-config": '{"applications": [{"name": "nginx", "qos": "LS"}]}',
}
_RESERVATION = {
    "metadata": {
        "name": "room",
        "uid": "u",
        "annotations": {
            "koordlet.io/match": '{"unit": "nginx.service"}',
            "scheduling.koordinator.sh/resource-status": '{"cpuset": "0-1"}',
        },
    },
    "spec": {"owners": [{"object": {"name": "a"}}]},
    "status": {"phase": "Available", "nodeName": "n1", "allocatable": {"cpu": "2"}},
}
_NOTE = '{"cpuset": "0-1", "cpuBindPolicy": "FullPCPUs", "a": [1]}'
_RICH = pods.pod(
    metadata__annotations=dict.fromkeys(registry.DECODERS, _NOTE),
    spec__overhead={"cpu": "10m"},
)

#: Name to the door and something good for it.
DOORS: dict[str, tuple[Door, bytes]] = {
    "kubelet pods": (
        kubelet_pods.PodListDecoder("kubelet").decode,
        (FIXTURES / "pods.json").read_bytes(),
    ),
    "kubelet configz": (_with_problems(configz.decode), (FIXTURES / "configz.json").read_bytes()),
    "kubelet stats": (_with_problems(summary.decode), (FIXTURES / "summary.json").read_bytes()),
    "cpu checkpoint": (
        lambda data, _: manager_states.cpus(data.decode()),
        (FIXTURES / "cpu_manager_state").read_bytes(),
    ),
    "memory checkpoint": (
        lambda data, _: manager_states.memory(data.decode()),
        (FIXTURES / "memory_manager_state").read_bytes(),
    ),
    "cluster pod": (_object(kinds.PODS, _pod), json.dumps(_RICH).encode()),
    "cluster node": (_object(kinds.NODES, nodes.decode), _named(_NODE)),
    "cluster NodeSLO": (
        _object(kinds.NODE_SLOS, nodeslo.decode),
        json.dumps(node_slos.OBJECT).encode(),
    ),
    "cluster map": (_object(kinds.CONFIG_MAPS, _map), _named({"data": _MAP})),
    "cluster reservation": (
        _object(kinds.RESERVATIONS, reservations.decode),
        json.dumps(_RESERVATION).encode(),
    ),
    "NodeMetric": (_object(kinds.NODE_METRICS, nodemetric.decode), _named(_METRIC)),
    "scheduler": (reservations.decode_all, json.dumps([_RESERVATION]).encode()),
    "manifest": (_manifest, json.dumps({"kind": "Pod", **_RICH}).encode()),
}

#: Whole answers that nobody should give.
WHOLE: dict[str, bytes] = {
    "nothing": b"",
    "null": b"null",
    "a list": b"[]",
    "a number": b"7",
    "a text": b'"text"',
    "true": b"true",
    "HTML": b"<html><body>502 Bad Gateway</body></html>",
    "an error": b'{"kind": "Status", "status": "Failure", "code": 500}',
    "another list": b'{"kind": "PodList", "items": [null, 7, "x", [], {}]}',
    "no UTF-8": b'{"metadata": {"name": "\xff\xfe"}}',
    "a lone surrogate": b'{"metadata": {"name": "\\ud800"}}',
    "nested without end": b"[" * 100_000,
    "nested objects": b'{"a":' * 50_000,
    "no number": b'{"a": NaN}',
    "beyond numbers": b'{"metadata": {"name": "x"}, "spec": {"priority": 1e999}}',
    "a megabyte": b'{"metadata": {"name": "' + b"x" * (1 << 20) + b'"}}',
    "NUL": b"\0" * 100,
    "a key twice": b'{"metadata": {"name": "a"}, "metadata": 7}',
}

#: What stands where something else belongs.
PARTS: tuple[Any, ...] = (
    None, True, -1, 0, 2**70, 1.5, 1e308, "", "x", "-5", "1e9999", "\ud800", "a\nb\x00\x1b[31m",
    "9" * 5000, [], {}, [None], [[]], {"": None}, {"x": {"y": []}},
)  # fmt: skip


def pass_through(name: str, data: bytes) -> list[str]:
    """Give a door something; what it said of it."""
    door, _ = DOORS[name]
    problems: list[str] = []
    try:
        door(data, problems)
    except (ValueError, errors.KoordletError) as error:
        problems.append(str(error))
    return problems


def judge(problems: list[str]) -> None:
    """What a log, an event and a page of ours can show."""
    for problem in problems:
        assert len(problem) <= LONGEST, problem[:200]
        assert not any(ord(letter) < 32 for letter in problem.replace("\n", " ")), problem
        json.dumps(problem)


def places(body: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a document; of a list the first item only."""
    if at:
        yield at
    if isinstance(body, dict):
        for key, value in body.items():
            yield from places(value, (*at, key))
    elif isinstance(body, list) and body:
        yield from places(body[0], (*at, 0))


def spoiled(body: Any, place: tuple[Any, ...], part: Any) -> bytes:
    """The document with something else in a place."""
    changed = copy.deepcopy(body)
    inner = changed
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = part
    return json.dumps(changed).encode()


@pytest.mark.parametrize("name", DOORS)
def test_good_input(name: str) -> None:
    """The table's good examples are good: what follows spoils something that works."""
    door, good = DOORS[name]

    assert door(good, [])


@pytest.mark.parametrize("name", DOORS)
def test_whole_answers(name: str) -> None:
    """Nothing that is given instead of an answer is more than that answer's loss."""
    for data in WHOLE.values():
        judge(pass_through(name, data))


@pytest.mark.parametrize("name", DOORS)
def test_halves(name: str) -> None:
    """An answer that ends anywhere is none."""
    _, good = DOORS[name]
    for end in range(0, len(good), max(1, len(good) // 40)):
        judge(pass_through(name, good[:end]))


@pytest.mark.parametrize("name", DOORS)
def test_wrong_types_at_every_level(name: str) -> None:
    """Each place of a good document holds something else: the rest is understood or all refused."""
    _, good = DOORS[name]
    body = json.loads(good)
    for number, place in enumerate(places(body)):
        # In turns: all with all is for the soak.
        for part in PARTS[number % 7 :: 7]:
            judge(pass_through(name, spoiled(body, place, part)))


@pytest.mark.soak
@pytest.mark.parametrize("name", DOORS)
def test_all_wrong_types_at_every_level(name: str) -> None:
    """The same with every wrong part in every place."""
    _, good = DOORS[name]
    body = json.loads(good)
    for place in places(body):
        for part in PARTS:
            judge(pass_through(name, spoiled(body, place, part)))
