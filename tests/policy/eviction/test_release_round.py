"""How many go: until enough is released, and nobody twice for the same relief."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from koordlet.model import decision, pod, snapshot
from koordlet.policy.best_effort import groups
from koordlet.policy.eviction import release_round
from koordlet.policy.eviction.release_round import State
from tests.kit import colocation, moments
from tests.kit.colocation import KubeQos, Qos

SHAPE = moments.machine(1, 2)


def moment(*names: str, at: float = 100.0) -> snapshot.Snapshot:
    """So many best-effort pods."""
    pods = [colocation.kube(name, KubeQos.BEST_EFFORT, Qos.BE) for name in names]
    return colocation.moment(SHAPE, pods, at=at)


def task(now: snapshot.Snapshot, amount: int, sizes: dict[str, int]) -> release_round.Task:
    """Everybody is a candidate, in the order of the pods."""

    def size(candidate: pod.Pod) -> int | None:
        return sizes.get(candidate.name)

    return release_round.Task(
        policy="memory_evict",
        feature="BEMemoryEvict",
        signal=decision.Signal(name="node.memory.used", observed="90%", threshold="70%", met=True),
        amount=amount,
        ordered=now.pods,
        size=size,
    )


def turn(
    now: snapshot.Snapshot,
    amount: int,
    sizes: dict[str, int],
    state: State | None = None,
    *,
    relieved: bool = False,
) -> tuple[str, State]:
    """Who is chosen by now, and the state."""
    tasks = [task(now, amount, sizes)] if amount else []
    after = release_round.turn(now, state or State(), tasks, cool=4.0, relieved=relieved)
    return "".join(victim.uid for victim in after.victims), after


SIZES = {"a": 5, "b": 5, "c": 5, "d": 5}


def test_until_enough_is_released() -> None:
    """In the order, and no further; the amount is met exactly by a sum that equals it."""
    assert [turn(moment(*"abcd"), amount, SIZES)[0] for amount in (1, 5, 6, 10, 99)] == [
        "a",
        "a",
        "ab",
        "ab",
        "abcd",
    ]


def test_chosen_and_still_here_counts_as_released() -> None:
    """After the cool time nobody else is chosen while their relief is on its way."""
    _, state = turn(moment(*"abcd"), 10, SIZES)
    assert turn(moment(*"abcd", at=110.0), 10, SIZES, state)[0] == "ab"
    assert turn(moment(*"bcd", at=110.0), 10, SIZES, state)[0] == "bc"


def test_who_is_being_deleted_counts_as_released() -> None:
    """Whoever deletes it: a person, another policy."""
    now = moment(*"abc")
    now = replace(now, pods=(replace(now.pods[0], deleting=5.0), *now.pods[1:]))

    assert turn(now, 10, SIZES)[0] == "b"


def test_cool_time() -> None:
    """Nobody is chosen within it; it starts again with a new choice only."""
    _, state = turn(moment(*"abcd"), 5, SIZES)
    early, kept = turn(moment(*"bcd", at=103.9), 5, SIZES, state)
    late, _ = turn(moment(*"bcd", at=104.0), 5, SIZES, kept)

    assert (early, late) == ("", "b")


def test_relief_lets_the_others_stay() -> None:
    """Who was chosen and not begun with stays once nothing is short."""
    _, state = turn(moment(*"abcd"), 20, SIZES)
    assert turn(moment(*"bcd", at=101.0), 0, SIZES, state, relieved=True)[0] == ""


def test_tasks_share_their_victims() -> None:
    """A pod that one task chose counts for the next, in the unit of the next."""
    now = moment(*"abc")
    first, two = task(now, 5, SIZES), task(now, 10, SIZES)
    after = release_round.turn(now, State(), [first, two], cool=4.0, relieved=False)

    assert [each.uid for each in after.victims] == ["a", "b"]


def test_a_stale_source_is_named() -> None:
    """Why nothing is done; a decision that is held has neither actions nor evictions."""
    now = moment(*"ab")
    _, state = turn(now, 10, SIZES)
    old = snapshot.Source(name="kubelet", ok=False, last_good=1.0, max_age=60.0)
    held = groups.stale(replace(now, sources=(old,)))
    made = release_round.decided(state, [], held)

    assert held == "no recent data from kubelet"
    assert not made.actions
    assert not made.evictions
    assert groups.stale(replace(now, pods=(replace(now.pods[0], stale=True),)))
    assert len(release_round.decided(state, []).actions) == 2


@given(
    sizes=st.lists(st.integers(0, 9), min_size=1, max_size=8),
    amounts=st.lists(st.integers(0, 40), min_size=1, max_size=12),
)
def test_never_more_than_needed(sizes: list[int], amounts: list[int]) -> None:
    """Whatever is asked for, round by round: without the last one chosen it was not enough."""
    names = "abcdefgh"[: len(sizes)]
    known = dict(zip(names, sizes, strict=True))
    state, count = State(), 0
    for number, amount in enumerate(amounts):
        chosen, state = turn(moment(*names, at=100.0 + 10 * number), amount, known, state)
        assert len(chosen) == len(set(chosen))
        if len(chosen) > count:
            assert sum(known[name] for name in chosen[:-1]) < amount
        count = len(chosen)
