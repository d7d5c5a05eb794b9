"""The sections ``node.cpuNormalization`` and ``node.amplification``."""

from __future__ import annotations

import pytest

from koordlet.agent import policy_settings
from koordlet.model import errors, node_ratios
from tests.kit import agents


def table(node: str) -> node_ratios.RatioTable:
    """The table of this section ``node``."""
    return policy_settings.ratio_table(agents.effective(f"node: {node}\n").config)


def test_each_key_has_its_ratio() -> None:
    """Whole numbers are ratios, too; what is left out is not measured."""
    models = "{models: [{model: A, base: 1.4, hyperThread: 1}, {model: B, base: 2, turbo: 2.5,"
    models += " hyperThreadTurbo: 3}], other: 1.1}"

    assert table(
        f"{{cpuNormalization: {models}, amplification: {{cpu: 1.5, memory: 1}}}}"
    ) == node_ratios.RatioTable(
        models={
            "A": node_ratios.ModelRatios(base=1.4, hyper_thread=1.0),
            "B": node_ratios.ModelRatios(base=2.0, turbo=2.5, hyper_thread_turbo=3.0),
        },
        other=1.1,
        amplification={"cpu": 1.5, "memory": 1.0},
    )


def test_the_default_is_empty() -> None:
    """Also where all keys are commented out."""
    assert table("{}").empty
    assert table("{cpuNormalization: , amplification: }").empty
    assert not table("{amplification: {memory: 1.2}}").empty
    assert not table("{cpuNormalization: {other: 1}}").empty


@pytest.mark.parametrize(
    ("node", "culprit"),
    [
        ("{cpuNormalization: {models: [{model: A, base: 0.5}]}}", r"models\[0\]\.base"),
        ("{cpuNormalization: {models: [{model: A, base: 7}]}}", r"models\[0\]\.base"),
        ("{cpuNormalization: {models: [{model: A, base: fast}]}}", r"models\[0\]\.base"),
        ("{cpuNormalization: {models: [{model: A, base: true}]}}", r"models\[0\]\.base"),
        ("{cpuNormalization: {models: [{model: A, base: .nan}]}}", r"models\[0\]\.base"),
        ("{cpuNormalization: {models: [{model: A}]}}", r"models\[0\]\.base"),
        ("{cpuNormalization: {models: [{model: '', base: 1}]}}", r"models\[0\]\.model"),
        (
            "{cpuNormalization: {models: [{model: A, base: 1}, {model: A, base: 2}]}}",
            r"models\[1\]\.model.*one row",
        ),
        ("{cpuNormalization: {other: 5.1}}", r"cpuNormalization\.other"),
        ("{amplification: {cpu: 0.9}}", r"amplification\.cpu"),
        ("{amplification: {cpu: many}}", r"amplification\.cpu"),
        ("{amplification: {cpu: .inf}}", r"amplification\.cpu"),
        ("{amplification: {'c p u': 2}}", r"amplification"),
    ],
)
def test_what_is_no_ratio_is_refused_with_its_place(node: str, culprit: str) -> None:
    """Below 1, above 5, no number, a model twice."""
    with pytest.raises(errors.ConfigError) as refused:
        table(node)

    assert refused.match(culprit)
