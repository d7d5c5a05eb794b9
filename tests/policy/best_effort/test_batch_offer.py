"""The last offer over a restart: what the checkpoint keeps of it, and for how long it stands."""

from __future__ import annotations

import dataclasses
import json

import pytest

from koordlet.history import series
from koordlet.policy.best_effort import batch_offer
from koordlet.policy.best_effort.batch_offer import State
from tests.policy.best_effort.test_batch_resources import BE, GIB, LS, USE, decided, history, moment


def test_an_offer_survives_a_restart_within_its_age() -> None:
    """A process that knows no use yet stands by the checkpoint, for a quarter of an hour."""
    first = decided(moment(LS, BE), history(USE, (6.0, 8.0 * GIB)))
    assert first.offer is not None
    kept = json.loads(json.dumps(dataclasses.asdict(batch_offer.keep(first.next_state))))
    found = []
    for minutes in (1, 14, 16):
        later = dataclasses.replace(moment(LS, BE), at=1000.0 + 60 * minutes)
        made = decided(later, series.History(), batch_offer.revive(kept))
        assert made.offer is not None
        found.append(dict(made.offer.amounts) == dict(first.offer.amounts))

    assert found == [True, True, False]


def test_what_is_kept_for_a_restart_changes_once_a_minute() -> None:
    """An offer is computed each 15 s; a checkpoint of each would be a write of each."""
    state, kept = State(), set()
    for turn in range(9):
        at = 1000.0 + 15 * turn
        now = dataclasses.replace(moment(LS, BE), at=at)
        past = history(USE, (6.0 + turn / 10, 8.0 * GIB), at=at)
        state = decided(now, past, state).next_state
        kept.add(batch_offer.keep(state).at)

    assert kept == {1000.0, 1060.0, 1120.0}


@pytest.mark.parametrize("body", [{}, {"amounts": {"a": "b"}}, {"amounts": {}, "at": "x"}])
def test_a_checkpoint_that_is_none(body: dict[str, object]) -> None:
    """It is refused as a whole."""
    with pytest.raises(ValueError, match=r"."):
        batch_offer.revive(body)
