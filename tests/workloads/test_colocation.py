"""A node's own strategy of co-location: annotation, labels, their order, what makes no sense."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.model import strategies
from koordlet.workloads import colocation, manifests, nodes, sloconfig

PREFIX = "node.koordinator.sh/"


def read(annotation: str | None = None, **labels: str) -> tuple[dict[str, Any], list[str]]:
    """The fields that are said, and what is wrong."""
    problems: list[str] = []
    notes = {} if annotation is None else {colocation.ANNOTATION: annotation}
    keys = {PREFIX + key.replace("_", "-"): text for key, text in labels.items()}
    strategy = colocation.of_node(keys, notes, problems)
    names = strategies.Colocation.__dataclass_fields__
    values = {name: getattr(strategy, name) for name in names} if strategy is not None else {}
    return {name: value for name, value in values.items() if value is not None}, problems


@pytest.mark.parametrize(
    ("annotation", "labels", "expected"),
    [
        (None, {}, {}),
        (
            '{"enable": true, "cpuReclaimThresholdPercent": 70}',
            {},
            {"enable": True, "cpu_reclaim_threshold_percent": 70},
        ),
        (
            '{"cpuReclaimThresholdPercent": 70, "midReclaimMode": "static"}',
            {"cpu_reclaim_ratio": "0.8", "memory_reclaim_ratio": "1.5"},
            {
                "cpu_reclaim_threshold_percent": 80,
                "memory_reclaim_threshold_percent": 150,
                "mid_reclaim_mode": "static",
            },
        ),
        (
            None,
            {"mid_static_cpu_reserved_ratio": "0.2", "mid_static_memory_reserved_ratio": "0"},
            {"mid_static_cpu_reserved_percent": 20, "mid_static_memory_reserved_percent": 0},
        ),
        # As the peer cuts it.
        (None, {"cpu_reclaim_ratio": "0.29"}, {"cpu_reclaim_threshold_percent": 28}),
    ],
)
def test_labels_lie_over_the_annotation(
    annotation: str | None, labels: dict[str, str], expected: dict[str, Any]
) -> None:
    """Field by field, without a word where all of it makes sense."""
    assert (expected, []) == read(annotation, **labels)


@pytest.mark.parametrize("text", ["", "-0.1", "x", "nan", "inf", "1e300", "1_0", "0.5%"])
def test_a_label_that_is_no_part_costs_itself(text: str) -> None:
    """The annotation shows through, and one problem names the label."""
    strategy, problems = read('{"cpuReclaimThresholdPercent": 70}', cpu_reclaim_ratio=text)

    assert strategy == {"cpu_reclaim_threshold_percent": 70}
    assert len(problems) == 1
    assert f"label {PREFIX}cpu-reclaim-ratio: expected a fraction such as 0.6" in problems[0]


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        ("x", {}),
        ("7", {}),
        ('{"midReclaimMode": "fixed"}', {}),
        ('{"midStaticCPUReservedPercent": 101, "enable": true}', {"enable": True}),
        ('{"cpuReclaimThresholdPercnt": 7}', {}),
    ],
)
def test_what_an_annotation_says_wrongly_costs_itself(annotation: str, expected: object) -> None:
    """One problem names annotation and field."""
    strategy, problems = read(annotation)

    assert expected == strategy
    assert len(problems) == 1
    assert problems[0].startswith(f"annotation {colocation.ANNOTATION}: ")


def test_the_map_knows_the_static_mode() -> None:
    """Its three fields are read, not read past."""
    text = '{"midReclaimMode": "static", "midStaticCPUReservedPercent": 20, "extensions": {}}'
    slo = sloconfig.decode({colocation.KEY: text}, {})

    assert (
        slo.problems,
        slo.colocation.mid_reclaim_mode,
        slo.colocation.mid_static_cpu_reserved_percent,
        slo.colocation.mid_static_memory_reserved_percent,
    ) == ((), "static", 20, 0)


def test_a_node_brings_its_own_strategy() -> None:
    """A Node object, from the API server or a file, whose mistakes are its problems."""
    body = {
        "kind": "Node",
        "metadata": {
            "name": "n1",
            "annotations": {colocation.ANNOTATION: '{"enable": true}'},
            "labels": {PREFIX + "cpu-reclaim-ratio": "x"},
        },
    }
    node = nodes.decode(body)
    collected = manifests.collect([body], "file")

    assert strategies.Colocation(enable=True) == node.colocation
    assert len(node.problems) == 1
    assert any("cpu-reclaim-ratio" in warning for warning in collected.warnings)
