"""One row for each policy, and one stem for everything about it."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest

from koordlet.config import schema
from koordlet.policy.framework import registry

RECORDED = sorted((Path(__file__).parents[3] / "fixtures/checkpoints").glob("*.json"))


def test_stems_are_unique_and_name_their_module() -> None:
    """A stem is its module's name, so that one search finds everything about a policy."""
    stems = [row.stem for row in registry.POLICIES]

    assert len(stems) == len(set(stems))
    for row in registry.POLICIES:
        module = importlib.import_module(row.decide.__module__)
        assert row.stem.endswith(module.__name__.rpartition(".")[2])
        assert row.stem == getattr(module, "STEM", row.stem)


def test_every_policy_is_configured_under_its_stem() -> None:
    """The configuration has a section with a mode for each policy, and no other."""
    sections = {field.alias or name for name, field in schema.Policies.model_fields.items()}

    assert {row.stem for row in registry.POLICIES} == sections


def test_states_survive_their_checkpoint() -> None:
    """What a policy remembers can be written as JSON and comes back equal."""
    lasting = [row for row in registry.POLICIES if row.kept is not None]
    assert lasting
    for row in lasting:
        body = json.loads(json.dumps(row.saved(row.state)))
        assert row.state == row.revive(body)


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda path: path.stem)
def test_recorded_checkpoint_of_each_policy_comes_back_whole(recorded: Path) -> None:
    """Checkpoints of a release before this one are read, and what they say is written again."""
    document = json.loads(recorded.read_text())
    (row,) = (row for row in registry.POLICIES if row.stem == recorded.stem)
    saved = row.saved(row.revive(document["state"]))

    assert row.schema == document["schema"]
    assert {key: document["state"][key] for key in saved} == saved
    assert [value for key, value in document["state"].items() if key not in saved and value] == []


def test_every_lasting_policy_has_a_recorded_checkpoint() -> None:
    """A policy that begins to last gets a recording, so that its format cannot change unseen."""
    lasting = {row.stem for row in registry.POLICIES if row.kept is not None}

    assert {recorded.stem for recorded in RECORDED} == lasting


def test_reservations_come_before_those_who_must_not_touch_them() -> None:
    """The ledger is filled from the strongest claim down."""
    stems = [row.stem for row in registry.POLICIES]

    assert stems.index("reserved_cpus") < stems.index("shared_pools")
