"""Runs the policies in order on one snapshot: the pure middle of the line.

Covers: folding claims into the ledger, keeping one policy's failure from the others.
Does not cover: merging actions into a plan (``apply.planner``), storing states (``daemon``).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from koordlet.history import series
from koordlet.model import decision, ledger, plan, snapshot
from koordlet.policy import registry


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one policy said, or how it failed."""

    stem: str
    mode: plan.Mode
    decision: decision.Decision[object] | None = None
    #: ``Type: text`` of the exception, empty when all is well.
    failure: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What all policies said about one snapshot."""

    outcomes: tuple[Outcome, ...]
    ledger: ledger.Ledger


def decide(
    rows: Sequence[registry.Row],
    now: snapshot.Snapshot,
    past: series.History,
    *,
    settings: Mapping[str, object],
    modes: Mapping[str, plan.Mode],
    states: Mapping[str, object],
    last: Mapping[str, decision.Decision[object]],
) -> Round:
    """Ask every policy that is not off.

    Claims of a policy in shadow do not bind the later ones. The claims of a policy that fails are
    those of its ``last`` good decision: a bug must not hand out reserved CPUs.
    """
    outcomes: list[Outcome] = []
    binding = shown = now.ledger
    for row in rows:
        mode = modes.get(row.stem, row.default_mode)
        if mode is plan.Mode.OFF:
            continue
        try:
            said = row.decide(
                dataclasses.replace(now, ledger=binding),
                past,
                settings.get(row.stem, row.settings),
                states.get(row.stem, row.state),
            )
        except Exception as error:  # noqa: BLE001 -- the station's boundary: it costs itself
            failure = f"{type(error).__name__}: {error}"
            outcomes.append(Outcome(stem=row.stem, mode=mode, failure=failure))
            if row.stem not in last:
                continue
            said = last[row.stem]
        else:
            outcomes.append(Outcome(stem=row.stem, mode=mode, decision=said))
        shown = shown.with_(said.claims, said.pools)
        if mode is plan.Mode.ENFORCE:
            binding = binding.with_(said.claims, said.pools)
    return Round(outcomes=tuple(outcomes), ledger=shown)
