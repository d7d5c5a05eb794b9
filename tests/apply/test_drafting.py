"""Draft after draft: what is trusted, for how long, and what is read in any case."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace

from koordlet.apply import drafting, planner
from koordlet.host.cgroup import hierarchies
from koordlet.model import action, cgroup, cpuset, decision, ledger, plan, result
from koordlet.policy.framework import chain
from koordlet.state import journal
from tests.kit import counting, moments

TOP = "/sys/fs/cgroup"
A, B = f"{TOP}/a/cpu.weight", f"{TOP}/b/cpu.weight"
#: The same object at every pass, as while the kernel tells what happens.
GROUPS: Mapping[str, cgroup.Group] = {}


class Site:
    """A machine with two groups, and the drafts of its passes."""

    def __init__(self, *, acting: bool = True) -> None:
        self.host = counting.machine("v2", "a", "b")
        self.drafter = drafting.Drafter(self.host)
        self.acting = acting
        layout = hierarchies.discover(self.host)
        self.seen = replace(moments.bare(layout), groups=GROUPS)
        self.repeated = False
        self._last = planner.Draft(plan=plan.Plan())

    def holds(self, target: str, weight: int) -> None:
        """Somebody writes."""
        self.host.write(self.host.at(target), str(weight).encode())

    def next(
        self,
        a: int,
        b: int,
        *,
        told: int = 0,
        trusting: bool = True,
        mode: plan.Mode = plan.Mode.ENFORCE,
        entries: Mapping[str, journal.Entry] | None = None,
        route: drafting.Route = planner.as_it_is,
    ) -> planner.Draft:
        """The draft of a pass that wants these weights."""
        wishes = tuple(
            action.WriteFile(target=target, value=str(weight), policy="p", reason="r")
            for target, weight in ((A, a), (B, b))
        )
        decided: decision.Decision[object] = decision.Decision(next_state=None, actions=wishes)
        outcome = chain.Outcome(stem="p", mode=mode, decision=decided)
        asked = replace(self.seen), chain.Round(outcomes=(outcome,), ledger=ledger.Ledger())
        before = self._last
        made = self._last = self.drafter.next(
            asked, entries or {}, told=told, trusting=trusting, acting=self.acting, route=route
        )
        self.repeated = made.wanted is before.wanted and made.plan.steps is before.plan.steps
        return made


def changes(made: planner.Draft) -> dict[str, tuple[str | None, str]]:
    """Target to what it says and what it shall say."""
    return {
        step.action.target: (step.was, step.action.value)
        for step in made.plan.steps
        if isinstance(step.action, action.WriteFile)
    }


def test_the_same_wishes_are_merged_once_unless_they_go_another_way() -> None:
    """A route may turn a wish into another action, by what the machine has at that moment."""
    site, routed = Site(), list[action.Action]()

    def route(wanted: action.Action) -> action.Action:
        routed.append(wanted)
        return wanted

    for way, times in ((route, 2), (route, 2), (functools.partial(route), 4)):
        site.holds(A, 100)
        site.next(100, 100, trusting=False, route=way)
        assert len(routed) == times


def test_a_file_that_says_what_is_wanted_is_not_read_again() -> None:
    """Another file is to be changed: that one is read, whatever was known of it."""
    site = Site()
    site.next(100, 100)
    site.holds(A, 7)
    site.holds(B, 8)

    assert changes(site.next(100, 50)) == {B: ("8", "50")}
    assert not site.repeated


def test_what_is_told_ends_the_trust_and_so_does_the_slow_lane() -> None:
    """A file that nobody was to write is seen to have been written."""
    for news in ({"told": 1}, {"trusting": False}):
        site = Site()
        site.next(100, 100)
        site.holds(A, 7)

        assert changes(site.next(100, 50, **news)) == {A: ("7", "100"), B: ("100", "50")}


def test_in_the_slow_lane_a_draft_stands_where_every_file_says_what_it_said() -> None:
    """They are read, and nothing else is worked out again."""
    site = Site()
    site.holds(A, 100)
    site.holds(B, 100)
    first = site.next(100, 100)
    second = site.next(100, 100, trusting=False)
    assert site.repeated
    assert first.plan.steps is second.plan.steps

    site.holds(A, 7)

    assert changes(site.next(100, 100, trusting=False)) == {A: ("7", "100")}
    assert not site.repeated


def test_in_the_slow_lane_a_draft_goes_with_what_is_in_the_journal() -> None:
    """What nobody wants any more goes back, as soon as it is known to be ours."""
    site = Site()
    site.holds(A, 100)
    site.holds(B, 100)
    burst = f"{TOP}/a/cpu.max.burst"
    site.next(100, 100)
    ours = journal.Entry(
        kind="WriteFile", target=burst, policy="p", original="0", values=("5",), knob="", group="a"
    )
    site.next(100, 100, trusting=False, entries={burst: ours})

    assert not site.repeated


def test_doubt_ends_the_trust() -> None:
    """A limit that protects others is not as it was left, and no reader of groups was told."""
    site = Site()
    site.next(100, 100)
    site.next(100, 100)
    assert site.repeated
    site.holds(A, 7)
    site.drafter.doubt()

    assert changes(site.next(100, 100)) == {A: ("7", "100")}


def test_trust_does_not_last() -> None:
    """However often a draft has something to do: after nine passes everything is read."""
    site = Site()
    site.next(100, 100)
    site.holds(A, 7)
    noticed = [A in changes(site.next(100, weight)) for weight in range(1, 12)]

    assert [*[False] * 9, True, True] == noticed


def test_what_was_written_is_read_again() -> None:
    """It may not say what it was told to say."""
    site = Site()
    step = site.next(100, 50).plan.steps[0]
    site.holds(B, 50)
    site.next(100, 50, told=1)
    site.drafter.touched([result.Result(target=B, verdict=result.Verdict.DONE, step=step)])
    site.holds(B, 60)

    assert changes(site.next(70, 50, told=1)) == {A: ("100", "70"), B: ("60", "50")}


def test_after_anything_but_a_write_everything_is_read() -> None:
    """A group that was made or removed may be another one under the same path."""
    site = Site()
    site.next(100, 100)
    gone = action.RemoveDir(target=f"{TOP}/a", policy="p", reason="r", group="a")
    step = plan.Step(order=0, action=gone, was=None)
    done = result.Result(target=gone.target, verdict=result.Verdict.DONE, step=step)
    site.drafter.touched([done])
    site.holds(A, 7)

    assert changes(site.next(100, 50)) == {A: ("7", "100"), B: ("100", "50")}


def test_whoever_does_not_act_is_not_asked_again() -> None:
    """An observing agent's plan is long, and it is the same plan; so is that of a shadow."""
    for acting, mode in ((False, plan.Mode.ENFORCE), (True, plan.Mode.SHADOW)):
        site = Site(acting=acting)
        first = site.next(1, 2, mode=mode)
        second = site.next(1, 2, mode=mode)

        assert site.repeated
        assert len(first.plan.steps) == 2
        assert first.plan.steps is second.plan.steps

    site = Site()
    site.next(1, 2)
    site.next(1, 2)
    assert not site.repeated, "what was to be done may have been done meanwhile"


def test_the_same_wishes_of_the_same_groups_are_one_object() -> None:
    """So originals and watched files are looked at again only where a pass wants otherwise."""
    site = Site()
    first, second = site.next(1, 2), site.next(1, 2)
    changed = site.next(1, 3)
    slow = site.next(1, 3, trusting=False)

    assert [write.target for write in first.wanted] == [A, B]
    assert second.wanted is first.wanted
    assert changed.wanted is not first.wanted
    assert (slow.wanted == changed.wanted, slow.wanted is changed.wanted) == (True, False)


def set_before(group: str, original: str | None, knob: str = "cpuset.cpus") -> journal.Entry:
    """One file of ours, and what it said before."""
    return journal.Entry(
        kind="WriteFile",
        target=f"/c/{group}/{knob}",
        policy="p",
        original=original,
        values=("1",),
        knob=knob,
        group=group,
        inode=1,
    )


def test_sets_of_cpus_alone_are_known_by_group() -> None:
    """Other files, and sets that nobody could read, are none; an empty one is an empty set."""
    entries = [
        set_before("a", "0-3"),
        set_before("b", ""),
        set_before("c", None),
        set_before("d", "2", "cpu.shares"),
    ]
    drafter = drafting.Drafter(counting.machine("v2"))
    drafter.follow({each.target: each for each in entries}, None)

    assert drafter.originals == {"a": cpuset.CPUSet.parse("0-3"), "b": cpuset.CPUSet()}


def test_the_same_groups_give_the_same_object() -> None:
    """Policies compare by identity: an equal journal is the same answer."""
    drafter = drafting.Drafter(counting.machine("v2"))
    entries = {"x": set_before("a", "0-3")}
    groups = ("a",)
    drafter.follow(entries, groups)
    first = drafter.originals

    drafter.follow({}, groups)
    assert drafter.originals is first
    drafter.follow({"x": set_before("a", "0-3")}, ("a", "b"))
    assert drafter.originals is first
    drafter.follow({}, None)
    assert drafter.originals == {}
