"""The policies in order: claims bind the later ones, and a failure costs its own policy only."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from koordlet.history import series
from koordlet.model import cpuset, decision, ledger, plan, queueing, snapshot
from koordlet.policy.framework import chain, declaration
from tests.kit import moments

Mode = plan.Mode


@dataclass(frozen=True, slots=True)
class Said:
    """Settings of a talking policy: what it claims, or that it fails."""

    claims: str = ""
    fails: bool = False
    #: Whether its signal is met.
    met: bool = False
    #: The set that the group ``g`` will have.
    sets: str = ""


def _decide(
    now: snapshot.Snapshot, past: series.History, settings: Said, state: int
) -> decision.Decision[int]:
    del past
    if settings.fails:
        msg = "cannot"
        raise RuntimeError(msg)
    claims = moments.reserved(settings.claims).claims if settings.claims else ()
    seen = {"held": str(now.ledger.held()), "g": str(now.sets.get("g", ""))}
    sets = {"g": cpuset.CPUSet.parse(settings.sets)} if settings.sets else {}
    signal = decision.Signal(name="s", observed="1", threshold="1", met=settings.met)
    return decision.Decision(
        next_state=state + 1, claims=claims, signals=(signal,), explanation=seen, sets=sets
    )


def talker(stem: str, *, compares: bool = False) -> declaration.Declared:
    """A policy that claims what it is told and says what was claimed before it."""
    return declaration.Policy(
        stem=stem,
        summary="talks",
        protects="nobody asks",
        decide=_decide,
        settings=Said(),
        state=0,
        schema=1,
        recall=lambda state: moments.reserved(str(state)).claims if state else (),
        compares=compares,
    )


ROWS = (talker("a"), talker("b", compares=True), talker("c"))


def asked(
    settings: Mapping[str, object],
    modes: Mapping[str, Mode] | None = None,
    last: Mapping[str, decision.Decision[object]] | None = None,
    states: Mapping[str, object] | None = None,
) -> tuple[chain.Round, dict[str, str]]:
    """One round, and what each policy saw claimed."""
    now = moments.moment(moments.machine())
    made = chain.decide(
        ROWS,
        now,
        series.History(),
        settings=settings,
        modes=modes or {},
        states=states or {},
        last=last or {},
    )
    saw = {
        outcome.stem: outcome.decision.explanation["held"]
        for outcome in made.outcomes
        if outcome.decision is not None
    }
    return made, saw


def test_later_policies_see_earlier_claims() -> None:
    """What a policy claims is in the ledger of those after it, not of those before."""
    made, saw = asked({"a": Said("0"), "b": Said("1")})

    assert saw == {"a": "", "b": "0", "c": "0-1"}
    assert str(made.ledger.held()) == "0-1"


def test_later_policies_see_where_groups_go() -> None:
    """Sets that a policy enforces are those that groups will have; in shadow nothing moves."""
    for mode, seen in ((Mode.ENFORCE, "0-3"), (Mode.SHADOW, "")):
        made, _ = asked({"a": Said(sets="0-3")}, {"a": mode})
        decisions = [outcome.decision for outcome in made.outcomes]

        assert ["", seen, seen] == [
            decided.explanation["g"] for decided in decisions if decided is not None
        ]


def test_claims_in_shadow_are_shown_and_bind_nobody() -> None:
    """A policy in shadow is explained, but no other policy works around its claims."""
    made, saw = asked({"a": Said("0")}, {"a": Mode.SHADOW})

    assert saw == {"a": "", "b": "", "c": ""}
    assert str(made.ledger.held()) == "0"


def test_a_policy_that_is_off_is_not_asked() -> None:
    """Off means that it is not even run."""
    made, _ = asked({"b": Said(fails=True)}, {"b": Mode.OFF})

    assert [outcome.stem for outcome in made.outcomes] == ["a", "c"]


def test_a_failing_policy_costs_itself() -> None:
    """The others go on; the failure is named with its type and text."""
    made, saw = asked({"b": Said(fails=True)})

    assert set(saw) == {"a", "c"}
    assert {outcome.stem: outcome.failure for outcome in made.outcomes} == {
        "a": "",
        "b": "RuntimeError: cannot",
        "c": "",
    }


def test_claims_of_a_failing_policy_stay() -> None:
    """A bug does not hand out what was claimed: the last good claims bind the later policies."""
    good, _ = asked({"a": Said("0-1")})
    last = {
        outcome.stem: outcome.decision for outcome in good.outcomes if outcome.decision is not None
    }
    made, saw = asked({"a": Said(fails=True)}, last=last)

    assert saw == {"b": "0-1", "c": "0-1"}
    assert cpuset.CPUSet.parse("0-1") == made.ledger.held(ledger.Owner.RESERVED)
    assert made.outcomes[0].decision is None


def test_a_policy_that_fails_from_the_start_claims_from_its_checkpoint() -> None:
    """In its very first pass what the state of the last agent stands for binds the others."""
    made, saw = asked({"a": Said(fails=True)}, states={"a": 7})

    assert saw == {"b": "7", "c": "7"}
    assert str(made.ledger.held(ledger.Owner.RESERVED)) == "7"


def test_a_failing_policy_in_shadow_still_binds_nobody() -> None:
    """Failing does not give a policy in shadow more weight than it has."""
    good, _ = asked({"a": Said("0-1")})
    last = {
        outcome.stem: outcome.decision for outcome in good.outcomes if outcome.decision is not None
    }
    _, saw = asked({"a": Said(fails=True)}, {"a": Mode.SHADOW}, last)

    assert saw == {"b": "", "c": ""}


def test_what_does_not_last_is_asked_again() -> None:
    """A timeless policy is asked once while nothing changes, unless it looked at what does."""
    asked_: list[bool] = []

    def decide(lasting: bool) -> Any:
        def said(*_: object) -> decision.Decision[object]:
            asked_.append(lasting)
            return decision.Decision(next_state=None, lasting=lasting)

        return said

    now, memory = moments.moment(moments.machine()), chain.Memory()
    for lasting, times in ((True, 1), (False, 3)):
        row = dataclasses.replace(talker("x"), decide=decide(lasting), timeless=True)
        asked_.clear()
        for _ in range(3):
            chain.decide(
                [dataclasses.replace(row, stem=f"x{lasting}")],
                now,
                series.History(),
                settings={},
                modes={},
                states={},
                last={},
                memory=memory,
            )
        assert times == len(asked_)


def test_a_state_that_was_made_anew_is_compared_once() -> None:
    """The state that a lasting decision gave is a new object once: after that it is the same."""
    looks: list[object] = []

    class Large:
        def __eq__(self, other: object) -> bool:
            looks.append(other)
            return isinstance(other, Large)

        def __hash__(self) -> int:
            return 0

    first, again = Large(), Large()
    row = dataclasses.replace(
        talker("x"),
        decide=lambda *_: decision.Decision(next_state=again, lasting=True),
        timeless=True,
    )
    now, memory = moments.moment(moments.machine()), chain.Memory()
    for state in (first, again, again, again):
        chain.decide(
            [row],
            now,
            series.History(),
            settings={},
            modes={},
            states={"x": state},
            last={},
            memory=memory,
        )

    assert len(looks) == 1


def test_who_looked_at_links_or_births_is_asked_when_these_change() -> None:
    """A link that comes, and a container that begins, change nothing else of the snapshot."""
    asked_: list[snapshot.Snapshot] = []

    def decide(now: snapshot.Snapshot, *_: object) -> decision.Decision[object]:
        asked_.append(now)
        return decision.Decision(next_state=None)

    row = dataclasses.replace(talker("x"), decide=decide, timeless=True)
    memory, now = chain.Memory(), moments.moment(moments.machine())
    link = queueing.Link(name="eth0", index=2)
    shaped = dataclasses.replace(now, links=queueing.Links(links=(link,)))
    begun = dataclasses.replace(shaped, born={"g": cpuset.CPUSet.parse("0")})
    for seen in (now, now, shaped, shaped, begun, begun):
        chain.decide(
            [row], seen, series.History(), settings={}, modes={}, states={}, last={}, memory=memory
        )

    assert asked_ == [now, shaped, begun]


def test_only_who_chooses_among_workloads_has_them_compared() -> None:
    """A signal of another policy, however long it is met, costs no counters of all workloads."""
    met = Said(met=True)

    assert asked({"b": met})[0].compares
    assert not asked({"a": met, "c": met})[0].compares
