"""One row for each policy, and one stem for everything about it."""

from __future__ import annotations

import dataclasses
import importlib
import json

from koordlet.config import schema
from koordlet.policy.framework import registry


def test_stems_are_unique_and_name_their_module() -> None:
    """A stem is its module's name, so that one search finds everything about a policy."""
    stems = [row.stem for row in registry.POLICIES]

    assert len(stems) == len(set(stems))
    for row in registry.POLICIES:
        module = importlib.import_module(row.decide.__module__)
        assert row.stem == module.__name__.rpartition(".")[2]
        assert row.stem == module.STEM
        assert row.revive is None or row.schema == module.SCHEMA


def test_every_policy_is_configured_under_its_stem() -> None:
    """The configuration has a section with a mode for each policy, and no other."""
    sections = {field.alias or name for name, field in schema.Policies.model_fields.items()}

    assert {row.stem for row in registry.POLICIES} == sections


def test_states_survive_their_checkpoint() -> None:
    """What a policy remembers can be written as JSON and comes back equal."""
    lasting = [row for row in registry.POLICIES if row.revive is not None]
    assert lasting
    for row in lasting:
        kept = row.keep(row.state)
        body = json.loads(json.dumps(dataclasses.asdict(kept)))  # type: ignore[call-overload]
        assert row.revive is not None
        assert row.state == row.revive(body)


def test_reservations_come_before_those_who_must_not_touch_them() -> None:
    """The ledger is filled from the strongest claim down."""
    stems = [row.stem for row in registry.POLICIES]

    assert stems.index("reserved_cpus") < stems.index("shared_pools")
