"""A field of a strategy stands in one table, and whoever reads it holds it to the same row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from koordlet.config import catalog, loader
from koordlet.model import errors, nodeslo, strategies, strategy_field
from koordlet.report.crds import definitions
from koordlet.workloads import strategy_reader
from tests.kit import agents

STRATEGIES = (
    *(strategies.Threshold, strategies.CpuBurst, strategies.CpuQos, strategies.MemoryQos),
    *(strategies.ResctrlQos, strategies.NetworkQos, strategies.System, strategies.Colocation),
)


def _of_the_file() -> Iterator[Any]:
    """Each field that is a key of the configuration, with the dotted path of that key."""
    paths = [field.path for field in catalog.fields()]
    for kind in STRATEGIES:
        for name, row in strategy_field.rows(kind).items():
            for stem in row.file:
                key = strategy_field.key(kind, name)
                keys = [p for p in paths if p.startswith(f"policies.{stem}.") and p.endswith(key)]
                yield pytest.param(kind, name, keys, id=f"{stem}.{key}")


def _refused_by_file(path: str, value: object) -> bool:
    try:
        loader.from_text(agents.HEADER, "f", {}, {path: value})
    except errors.ConfigError as error:
        return path in str(error)
    return False


def _refused_by_reader(kind: type, name: str, value: object) -> bool:
    problems: list[str] = []
    strategy_reader.of(kind)({strategy_field.key(kind, name): value}, problems)
    return bool(problems)


@pytest.mark.parametrize(("kind", "name", "paths"), list(_of_the_file()))
def test_file_and_objects_refuse_the_same_values(kind: type, name: str, paths: list[str]) -> None:
    """Beyond a bound, and of another type, for every key that is made of the row."""
    row = strategy_field.rows(kind)[name]
    wrong: dict[str, list[object]] = {
        "whole": [row.low - 1, row.high + 1]
        if row.high < strategy_field.INT64 - 1
        else [row.low - 1],
        "switch": ["perhaps"],
        "word": ["perhaps"],
        "amount": ["perhaps", "-1"],
        "share": [-1, 101, "perhaps"],
    }

    assert paths != []
    for value in wrong[row.form]:
        assert [_refused_by_file(path, value) for path in paths] == [True] * len(paths)
        assert _refused_by_reader(kind, name, value)


def _schema(*keys: str) -> Any:
    spec = definitions.document(definitions.find("nodeslos"))["spec"]["versions"][0]
    node = spec["schema"]["openAPIV3Schema"]["properties"]["spec"]
    for key in keys:
        node = node["properties"][key]
    return node["properties"]


@pytest.mark.parametrize(
    "name", [section for section in nodeslo.SECTIONS if section != "colocation"]
)
def test_the_custom_resource_has_each_field_with_its_meaning(name: str) -> None:
    """The section's fields are those of the table, under the peer's keys."""
    kind = type(getattr(nodeslo.DEFAULTS, name))
    descriptions = {
        key: field.get("description", "") for key, field in _schema(nodeslo.SECTIONS[name]).items()
    }

    assert descriptions == {
        strategy_field.key(kind, field): row.doc for field, row in strategy_field.rows(kind).items()
    }


def test_group_identity_of_the_kernel_is_a_number_for_the_api_server_too() -> None:
    """The peer writes 0 or 1: a definition that wants true or false would refuse its objects."""
    properties = _schema("systemStrategy")["schedGroupIdentityEnabled"]

    assert (properties["type"], properties["format"]) == ("integer", "int64")


@pytest.mark.parametrize(
    ("kind", "body", "problem"),
    [
        (strategies.CpuBurst, {"cpuBurstPercent": 0}, ""),
        (strategies.Colocation, {"cpuCalculatePolicy": "request"}, "expected one of 'usage'"),
        (strategies.System, {"watermarkScaleFactor": 500}, "expected 10 to 400"),
        (strategies.ResctrlQos, {"mbaPercent": 0}, "expected 1 to 100"),
    ],
)
def test_where_file_and_objects_once_disagreed(kind: type, body: Any, problem: str) -> None:
    """One of both took these values and the other did not."""
    problems: list[str] = []
    strategy_reader.of(kind)(body, problems)

    assert [problem in line for line in problems] == ([True] if problem else [])


def test_a_pod_says_no_field_of_nodes_and_a_node_none_of_pods() -> None:
    """Such a key is unknown there."""
    problems: list[str] = []
    strategy_reader.annotation(strategies.CpuBurst)('{"sharePoolThresholdPercent": 1}', problems)
    strategy_reader.of(strategies.MemoryQos)({"policy": "auto"}, problems)

    assert problems == ["'sharePoolThresholdPercent' is not known", "'policy' is not known"]


def test_defaults_of_a_strategy_are_those_of_its_rows() -> None:
    """What nobody says and has no default stays unsaid; parts have their own."""
    defaults = strategy_field.defaults(strategies.ClassQos)

    assert (defaults.memory.wmark_scale_permill, defaults.memory.policy) == (50, None)
    assert defaults.resctrl == strategies.ResctrlQos(
        enable=False, cat_range_start_percent=0, cat_range_end_percent=100, mba_percent=100
    )
