"""The row of a CPU model, and the two annotations of the Node that follow from it."""

from __future__ import annotations

import json

import pytest

from koordlet.model import node_ratios, topology
from koordlet.model.node_ratios import AMPLIFICATION, NORMALIZATION

MODEL = "Xeon 8269CY"
ROWS = node_ratios.ModelRatios(base=1.5, hyper_thread=1.0, turbo=1.8, hyper_thread_turbo=1.2)
TABLE = node_ratios.RatioTable(models={MODEL: ROWS})


def computed(
    table: node_ratios.RatioTable,
    *,
    smt: str | None = "on",
    turbo: bool | None = True,
    model: str | None = MODEL,
    label: str | None = None,
) -> node_ratios.NodeRatios:
    """The ratios of a machine with this table."""
    machine = topology.Topology(smt=smt, turbo=turbo, model_name=model)
    labels = {} if label is None else {node_ratios.ENABLED: label}
    ratios = node_ratios.computed(machine, labels, table)
    assert ratios is not None
    return ratios


@pytest.mark.parametrize(
    ("smt", "turbo", "ratio", "row"),
    [
        ("off", False, "1.50", "SMT off, turbo off: base, 1.5"),
        ("notsupported", False, "1.50", "SMT off, turbo off: base, 1.5"),
        ("on", False, "1.00", "SMT on, turbo off: hyperThread, 1"),
        ("off", True, "1.80", "SMT off, turbo on: turbo, 1.8"),
        ("on", True, "1.20", "SMT on, turbo on: hyperThreadTurbo, 1.2"),
        ("on", None, "1.00", "turbo unknown, taken as off: hyperThread, 1"),
        (None, None, "1.50", "SMT unknown, taken as off, turbo unknown, taken as off: base, 1.5"),
    ],
)
def test_the_row_is_that_of_the_machine_as_it_runs(
    smt: str | None, turbo: bool | None, ratio: str, row: str
) -> None:
    """SMT and turbo choose among four; what is unknown is off, and the reason says so."""
    ratios = computed(TABLE, smt=smt, turbo=turbo)

    assert ratios.annotations({})[NORMALIZATION] == ratio
    assert ratios.reason.endswith(row)
    assert ratios.reason.startswith(MODEL)


def test_an_unknown_model_has_the_ratio_for_others_or_none() -> None:
    """Nothing is reported of a model that nobody measured, unless a ratio is given for it."""
    other = node_ratios.RatioTable(models={MODEL: ROWS}, other=1.1)

    assert computed(TABLE, model="EPYC").annotations({}) == {}
    assert computed(other, model="EPYC").annotations({})[NORMALIZATION] == "1.10"
    assert computed(other, model=None).reason.startswith("unknown model is not in the table")
    assert computed(other).annotations({})[NORMALIZATION] == "1.20"


def test_a_state_that_was_not_measured_has_no_ratio() -> None:
    """The row of a model may lack the ratio with SMT and turbo."""
    table = node_ratios.RatioTable(
        models={MODEL: node_ratios.ModelRatios(base=1.5)},
        other=1.1,
    )

    ratios = computed(table)

    assert ratios.annotations({}) == {}
    assert ratios.reason.endswith("hyperThreadTurbo, no ratio")


@pytest.mark.parametrize(
    ("text", "other", "same"),
    [
        ("1.2", "1.20", True),
        ('{"cpu": 1.5, "memory": 2}', '{"memory":2.0,"cpu":1.50}', True),
        ("1.3", "1.20", False),
        ("fast", "1.20", False),
        ("fast", "fast", True),
        ("[" * 100_000, "1.20", False),
    ],
)
def test_annotations_are_alike_by_their_numbers(text: str, other: str, *, same: bool) -> None:
    """People write fewer digits, and spaces; what is no number is compared letter by letter."""
    assert node_ratios.alike(text, other) is same


@pytest.mark.parametrize(
    ("label", "ratio", "cpu"), [("false", "1.00", 1.5), ("true", "1.20", 1.8), (None, "1.20", 1.8)]
)
def test_the_label_of_the_node_switches_normalization_off(
    label: str | None, ratio: str, cpu: float
) -> None:
    """Amplification by the operator stays."""
    table = node_ratios.RatioTable(models={MODEL: ROWS}, amplification={"cpu": 1.5})

    annotations = computed(table, label=label).annotations({})

    assert annotations == {NORMALIZATION: ratio, AMPLIFICATION: f'{{"cpu":{cpu}}}'}


@pytest.mark.parametrize(
    ("configured", "expected"),
    [
        ({"cpu": 1.0}, {"cpu": 1.2}),
        ({"cpu": 1.255, "memory": 1.333}, {"cpu": 1.51, "memory": 1.33}),
        ({"memory": 1.0}, {"cpu": 1.2, "memory": 1.0}),
    ],
)
def test_the_amplification_of_cpu_is_multiplied_by_the_ratio(
    configured: dict[str, float], expected: dict[str, float]
) -> None:
    """Two decimals; other resources have what is configured."""
    table = node_ratios.RatioTable(models={MODEL: ROWS}, amplification=configured)

    assert json.loads(computed(table).annotations({})[AMPLIFICATION]) == expected


@pytest.mark.parametrize(("theirs", "cpu"), [("2.00", 3.0), ("7", 1.5), ("fast", 1.5)])
def test_a_ratio_that_somebody_else_wrote_amplifies_before_the_tables(
    theirs: str, cpu: float
) -> None:
    """Both annotations shall be about the same CPUs; an invalid one amplifies nothing."""
    table = node_ratios.RatioTable(models={MODEL: ROWS}, amplification={"cpu": 1.5})

    made = computed(table).annotations({NORMALIZATION: theirs})

    assert json.loads(made[AMPLIFICATION]) == {"cpu": cpu}


def test_amplification_alone_reports_no_ratio() -> None:
    """Without models, and without a ratio for others, the label has nothing to switch off."""
    table = node_ratios.RatioTable(amplification={"memory": 1.25})

    assert computed(table, label="false").annotations({}) == {AMPLIFICATION: '{"memory":1.25}'}


def test_a_ratio_alone_amplifies_nothing() -> None:
    """Where nobody multiplies what the node can give, an amplification takes from it."""
    assert computed(TABLE).annotations({}) == {NORMALIZATION: "1.20"}


def test_an_empty_table_reports_nothing() -> None:
    """The default."""
    machine = topology.Topology(model_name=MODEL)

    assert node_ratios.computed(machine, {}, node_ratios.RatioTable()) is None
