"""Runs the policies in order on one snapshot: the pure middle of the line.

Covers: folding claims into the ledger, keeping one policy's failure from the others.
Does not cover: merging actions into a plan (``apply.planner``), storing states (``agent.loop``).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from operator import is_

from koordlet.history import series
from koordlet.model import decision, ledger, plan, snapshot
from koordlet.model.record import dataclass
from koordlet.policy.framework import declaration


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The decision of one policy, or its failure."""

    stem: str
    mode: plan.Mode
    decision: decision.Decision[object] | None = None
    #: ``Type: text`` of the exception, empty when all is well.
    failure: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """The decisions of all policies about one snapshot."""

    outcomes: tuple[Outcome, ...]
    #: What counts: without the claims of policies in shadow mode.
    binding: ledger.Ledger = dataclasses.field(default_factory=ledger.Ledger)
    #: With them, for people to see.
    ledger: ledger.Ledger
    #: What is to be known beside what policies say.
    conditions: tuple[decision.Condition, ...] = ()
    #: Whether a policy chooses among workloads, or may at the next pass.
    compares: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """What one policy decided from, beside the snapshot and the history."""

    #: The claims and pools of the policies before it that bind.
    ledger: ledger.Ledger
    settings: object
    state: object
    #: Nothing that it looks at has changed, so its last decision stands: it was not called.
    remembered: bool


#: By the stem of the policy.
Inputs = dict[str, Input]


class Memory:
    """Last decision of each timeless policy, reused while its inputs stay the same.

    Values that belong to the snapshot are compared by identity: the observer hands out the same
    object while nothing changed.
    """

    def __init__(self) -> None:
        #: All that belongs to the snapshot: the same object while each part of it is.
        self._world: tuple[object, ...] = ()
        self._answers: dict[str, tuple[tuple[object, ...], decision.Decision[object]]] = {}

    def look(self, now: snapshot.Snapshot) -> None:
        """Set the snapshot that the next lookups are about."""
        world = _timeless(now)
        if not self._world or not all(map(is_, world, self._world)):
            self._world = world

    def recall(
        self, policy: declaration.Declared, asked: ledger.Ledger, settings: object, state: object
    ) -> decision.Decision[object] | None:
        """The last decision, where its inputs are unchanged."""
        known = self._answers.get(policy.stem)
        if known is None or known[0][0] is not self._world:
            return None
        inputs = (self._world, asked, settings, state)
        if known[0] != inputs:
            return None
        # The next comparison is with these objects, which may be the very same then.
        self._answers[policy.stem] = (inputs, known[1])
        return known[1]

    def keep(
        self,
        policy: declaration.Declared,
        asked: ledger.Ledger,
        settings: object,
        state: object,
        decided: decision.Decision[object],
    ) -> None:
        """Remember a decision together with its inputs."""
        self._answers.pop(policy.stem, None)
        if policy.timeless and decided.lasting:
            self._answers[policy.stem] = ((self._world, asked, settings, state), decided)


def _timeless(now: snapshot.Snapshot) -> tuple[object, ...]:
    """All inputs of a timeless policy except the ledger."""
    return (
        now.node,
        now.topology,
        now.layout,
        now.groups,
        now.pods,
        now.went_offline,
        now.resctrl,
        now.slo,
        now.reservations,
        now.claims,
        now.unsupported,
        # Its statistics change all the time, and a policy of these looks at history instead.
        None if now.kubelet is None else now.kubelet.cpu,
        None if now.kubelet is None else now.kubelet.configuration,
        now.through_systemd,
        now.unit_idle,
        now.blocks,
        # Their object is made anew each time while nobody shapes traffic; the tuples are not.
        now.links.links,
        now.links.problems,
        now.born,
        now.sets,
    )


def decide(
    policies: Sequence[declaration.Declared],
    now: snapshot.Snapshot,
    past: series.History,
    *,
    settings: Mapping[str, object],
    modes: Mapping[str, plan.Mode],
    states: Mapping[str, object],
    last: Mapping[str, decision.Decision[object]],
    memory: Memory | None = None,
    inputs: Inputs | None = None,
) -> Round:
    """Run every policy that is not off; ``inputs`` keeps what each was given.

    Claims of a policy in shadow do not bind the later ones. The claims of a policy that fails are
    those of its ``last`` good decision, in its first pass those of its checkpoint: a bug must not
    hand out reserved CPUs.
    """
    outcomes: list[Outcome] = []
    binding = shown = now.ledger
    sets = now.sets
    asked, compares = now, False
    if memory is not None:
        memory.look(now)
    for policy in policies:
        mode = modes.get(policy.stem, policy.default_mode)
        if mode is plan.Mode.OFF:
            continue
        if asked.ledger is not binding or asked.sets is not sets:
            asked = dataclasses.replace(now, ledger=binding, sets=sets)
        with_ = settings.get(policy.stem, policy.settings), states.get(policy.stem, policy.state)
        recalled = memory.recall(policy, binding, *with_) if memory is not None else None
        if inputs is not None:
            inputs[policy.stem] = Input(
                ledger=binding,
                settings=with_[0],
                state=with_[1],
                remembered=recalled is not None,
            )
        try:
            decided = recalled or policy.decide(asked, past, *with_)
        except Exception as error:  # noqa: BLE001 -- the station's boundary: it costs itself
            failure = f"{type(error).__name__}: {error}"
            outcomes.append(Outcome(stem=policy.stem, mode=mode, failure=failure))
            # One that has failed since this process started has the claims of its checkpoint.
            claims = policy.recall(with_[1]) if policy.recall is not None else ()
            decided = last.get(policy.stem) or decision.Decision(next_state=with_[1], claims=claims)
        else:
            outcomes.append(Outcome(stem=policy.stem, mode=mode, decision=decided))
            if memory is not None and recalled is None:
                memory.keep(policy, binding, *with_, decided)
            compares |= policy.compares and any(signal.met for signal in decided.signals)
        binds = mode is plan.Mode.ENFORCE
        sets = {**sets, **decided.sets} if binds and decided.sets else sets
        if not (decided.claims or decided.pools):
            continue
        shown = shown.with_(decided.claims, decided.pools)
        binding = binding.with_(decided.claims, decided.pools) if binds else binding
    return Round(outcomes=tuple(outcomes), ledger=shown, binding=binding, compares=compares)
