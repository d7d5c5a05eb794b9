"""KOORDLET_ variables set single values, and nothing unknown passes."""

from __future__ import annotations

import pytest

from koordlet.config import catalog, environment, plain, schema
from koordlet.model import errors


def refused(env: dict[str, str]) -> errors.ConfigError:
    """The error that the environment ends in."""
    with pytest.raises(errors.ConfigError) as caught:
        environment.layer(env)
    return caught.value


@pytest.mark.parametrize(
    ("name", "text", "data"),
    [
        ("KOORDLET_MODE", "observe", {"mode": "observe"}),
        ("KOORDLET_STATE__HANDOVER_SECONDS", "7", {"state": {"handoverSeconds": 7}}),
        ("KOORDLET_STATE__ON_STOP", "handover", {"state": {"onStop": "handover"}}),
        ("KOORDLET_REPORT__HTTP__ENABLED", "no", {"report": {"http": {"enabled": False}}}),
        ("KOORDLET_REPORT__HTTP__ENABLED", "maybe", {"report": {"http": {"enabled": "maybe"}}}),
        (
            "KOORDLET_POLICIES__RESERVED_CPUS__LIMITS__MAX_CPUS",
            "null",
            {"policies": {"reserved_cpus": {"limits": {"maxCpus": None}}}},
        ),
        (
            "KOORDLET_POLICIES__RESERVED_CPUS__CPUS",
            "3",
            {"policies": {"reserved_cpus": {"cpus": "3"}}},
        ),
        ("KOORDLET_STATE__DIR", "", {"state": {"dir": None}}),
        ("KOORDLET_NODE__NAME", "120", {"node": {"name": "120"}}),
    ],
)
def test_one(name: str, text: str, data: dict[str, object]) -> None:
    """A variable sets one value, typed as its field."""
    layer = environment.layer({name: text})

    assert data == layer.data
    assert {name} == set(layer.origins.values())


def test_every_scalar_has_its_own() -> None:
    """No two fields share a variable, and each variable is the path in capitals."""
    variables = [field.variable for field in catalog.fields()]

    assert len(variables) == len(set(variables))
    assert "KOORDLET_STATE__HANDOVER_SECONDS" in variables
    assert not {"KOORDLET_API_VERSION", "KOORDLET_KIND"} & set(variables)


@pytest.mark.parametrize(
    "name",
    [
        "KOORDLET_ROOT",
        "KOORDLET_CONFIG",
        "KOORDLET_TEST_ANYTHING",
        "KOORDLET_RDT_L3",
        "KOORDLET_K8S_LAB",
        "HOME",
        "koordlet_mode",
        "XKOORDLET_MODE",
    ],
)
def test_not_ours(name: str) -> None:
    """Names of the command line, of tests and of others are left alone."""
    assert environment.layer({name: "x"}).data == {}


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("KOORDLET_MOD", "KOORDLET_MODE"),
        ("KOORDLET_STATE_HANDOVER_SECONDS", "KOORDLET_STATE__HANDOVER_SECONDS"),
        ("KOORDLET_STATE__HANDOVERSECONDS", "KOORDLET_STATE__HANDOVER_SECONDS"),
    ],
)
def test_unknown(name: str, nearest: str) -> None:
    """An unknown variable is an error naming the nearest."""
    error = refused({name: "x"})

    assert (name, f'did you mean "{nearest}"?') == (error.culprit, error.fix)


@pytest.mark.parametrize("name", ["KOORDLET_WORKLOADS", "KOORDLET_NODE__LABELS"])
def test_no_variable(name: str) -> None:
    """Lists and maps are set in the file only, and the error says so."""
    assert refused({name: "x"}).fix == "set it in the configuration file"


def test_all_together() -> None:
    """All bad variables are reported together."""
    text = str(refused({"KOORDLET_A": "x", "KOORDLET_B": "x"}))

    assert "KOORDLET_A" in text
    assert "KOORDLET_B" in text


def test_defaults_round_trip() -> None:
    """Every default, written as a variable, is read back as itself."""
    for field in catalog.fields():
        if not field.scalar:
            continue
        value: object = plain.document(schema.defaults())
        for key in field.loc:
            assert isinstance(value, dict)
            value = value[key]
        # By type: 0 is equal to False, and is not false.
        text = str(value).lower() if isinstance(value, bool) else str(value)
        text = "" if value is None else text

        assert value == environment.typed(field, text), field.path
