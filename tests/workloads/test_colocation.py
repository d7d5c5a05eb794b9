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
    found = colocation.of_node(keys, notes, problems)
    names = strategies.Colocation.__dataclass_fields__
    said = {name: getattr(found, name) for name in names} if found is not None else {}
    return {name: value for name, value in said.items() if value is not None}, problems


@pytest.mark.parametrize(
    ("annotation", "labels", "said"),
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
    annotation: str | None, labels: dict[str, str], said: dict[str, Any]
) -> None:
    """Field by field, without a word where all of it makes sense."""
    assert (said, []) == read(annotation, **labels)


@pytest.mark.parametrize("text", ["", "-0.1", "x", "nan", "inf", "1e300", "1_0", "0.5%"])
def test_a_label_that_is_no_part_costs_itself(text: str) -> None:
    """The annotation shows through, and one problem names the label."""
    said, problems = read('{"cpuReclaimThresholdPercent": 70}', cpu_reclaim_ratio=text)

    assert said == {"cpu_reclaim_threshold_percent": 70}
    assert len(problems) == 1
    assert f"label {PREFIX}cpu-reclaim-ratio: expected a fraction such as 0.6" in problems[0]


@pytest.mark.parametrize(
    ("annotation", "said"),
    [
        ("x", {}),
        ("7", {}),
        ('{"midReclaimMode": "fixed"}', {}),
        ('{"midStaticCPUReservedPercent": 101, "enable": true}', {"enable": True}),
        ('{"cpuReclaimThresholdPercnt": 7}', {}),
    ],
)
def test_what_an_annotation_says_wrongly_costs_itself(annotation: str, said: object) -> None:
    """One problem names annotation and field."""
    found, problems = read(annotation)

    assert said == found
    assert len(problems) == 1
    assert problems[0].startswith(f"annotation {colocation.ANNOTATION}: ")


def test_the_map_knows_the_static_mode() -> None:
    """Its three fields are read, not read past."""
    said = '{"midReclaimMode": "static", "midStaticCPUReservedPercent": 20, "extensions": {}}'
    found = sloconfig.decode({colocation.KEY: said}, {})

    assert (
        found.problems,
        found.colocation.mid_reclaim_mode,
        found.colocation.mid_static_cpu_reserved_percent,
        found.colocation.mid_static_memory_reserved_percent,
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
    found = nodes.decode(body)
    collected = manifests.collect([body], "file")

    assert strategies.Colocation(enable=True) == found.colocation
    assert len(found.problems) == 1
    assert any("cpu-reclaim-ratio" in one for one in collected.warnings)
