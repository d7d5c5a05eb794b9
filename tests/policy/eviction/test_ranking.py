"""Who goes first: the kubelet's keys, against a slow comparison written down from its rules."""

from __future__ import annotations

import functools

import hypothesis
import pytest
from hypothesis import strategies as st

from koordlet.model import pod, pressure, qos, resources, thresholds
from koordlet.policy.eviction import pod_use, ranking

_Pair = tuple[pod.Pod, pod_use.Use | None]


def pair(
    name: str,
    use: pod_use.Use | None = None,
    *,
    priority: int | None = None,
    memory: int = 0,
    disk: int = 0,
    static: bool = False,
) -> _Pair:
    """A pod and what it uses."""
    asked = {resources.MEMORY: memory, resources.EPHEMERAL_STORAGE: disk}
    made = pod.Pod(
        uid=name,
        namespace="d",
        name=name,
        qos=qos.Qos.LS,
        source="test",
        priority=priority,
        static=static,
        requests={key: value for key, value in asked.items() if value},
    )
    return made, use


def order(signal: str, *pods: _Pair, layout: str = pressure.SINGLE) -> str:
    """The names in order."""
    return "".join(ranked.pod.name for ranked in ranking.rank(signal, layout, pods))


def mem(used: int) -> pod_use.Use:
    """So much memory."""
    return pod_use.Use(memory=used)


def test_memory() -> None:
    """Over the request, then priority, then how much over; the class is no key."""
    assert (
        order(
            thresholds.MEMORY,
            pair("a", mem(300), memory=100, priority=9),
            pair("b", mem(900), memory=800, priority=1),
            pair("c", mem(200), priority=1),
            pair("d", mem(5000), memory=5000, priority=-5),
        )
        == "cbad"
    )
    assert order(thresholds.ALLOCATABLE_MEMORY, pair("b", mem(1)), pair("a", mem(1))) == "ab"


def test_unknown_use_comes_first() -> None:
    """A pod that nobody measures comes before the others; among such, priority decides."""
    assert (
        order(
            thresholds.MEMORY,
            pair("a", mem(500), priority=0),
            pair("b", mem(0), priority=0),
            pair("y", priority=5),
            pair("z", priority=1),
        )
        == "zyab"
    )


def test_processes() -> None:
    """Priority, then how many; what is asked for does not matter."""
    count = [pod_use.Use(processes=n) for n in (10, 500)]

    assert (
        order(
            thresholds.PIDS,
            pair("a", count[0], priority=1),
            pair("b", count[1], priority=1),
            pair("c", count[1], priority=2),
            pair("x", priority=1),
        )
        == "xbac"
    )


@pytest.mark.parametrize(
    ("signal", "layout", "first"),
    [
        ("nodefs.available", pressure.SINGLE, "r"),
        ("imagefs.available", pressure.SINGLE, "r"),
        ("nodefs.available", pressure.DEDICATED, "l"),
        ("imagefs.available", pressure.DEDICATED, "r"),
        ("containerfs.available", pressure.DEDICATED, "r"),
        ("nodefs.available", pressure.SPLIT, "r"),
        ("containerfs.available", pressure.SPLIT, "r"),
        ("imagefs.available", pressure.SPLIT, "l"),
    ],
)
def test_what_lies_on_a_file_system(signal: str, layout: str, first: str) -> None:
    """Layers, logs and volumes count where they lie; on a disk of images nobody has anything."""
    logs = pair("l", pod_use.Use(disk={"root": 0, "logs": 100, "volumes": 50}))
    root = pair("r", pod_use.Use(disk={"root": 900, "logs": 0, "volumes": 0}))

    assert order(signal, root, logs, layout=layout)[0] == first


def test_inodes_take_the_bytes_that_were_asked_for() -> None:
    """No pod can ask for inodes, so any exceeds; the byte request is taken from the count."""
    many, few = (pod_use.Use(inodes={"root": n}) for n in (1000, 10))

    assert order("nodefs.inodesFree", pair("a", many, disk=5000), pair("b", few)) == "ba"
    assert order("nodefs.inodesFree", pair("a", many), pair("b", few)) == "ab"


def test_who_is_passed_over() -> None:
    """Static pods whatever their priority, and pods of the system classes."""
    assert ranking.spared(pair("a", static=True)[0])
    assert ranking.spared(pair("a", priority=2_000_000_000)[0])
    assert not ranking.spared(pair("a", priority=1_999_999_999)[0])


def _slowly(signal: str, first: _Pair, other: _Pair) -> int:
    """The kubelet's comparison, key by key: negative where the first goes first."""
    stats = [each[1] for each in (first, other)]
    priorities = [each[0].priority or 0 for each in (first, other)]

    def missing() -> int:
        return (stats[0] is not None) - (stats[1] is not None)

    def known() -> bool:
        return stats[0] is not None and stats[1] is not None

    used = [(use.memory or 0) if use is not None else 0 for use in stats]
    asked = [each[0].requests.get(resources.MEMORY, 0) for each in (first, other)]
    by_priority = priorities[0] - priorities[1]
    if signal == thresholds.PIDS:
        counts = [(use.processes or 0) if use is not None else 0 for use in stats]
        return by_priority or (counts[1] - counts[0] if known() else missing())
    exceeds = (used[1] > asked[1]) - (used[0] > asked[0]) if known() else missing()
    more = (used[1] - asked[1]) - (used[0] - asked[0]) if known() else missing()
    return exceeds or by_priority or more


_numbers = st.integers(0, 4)
_pods = st.lists(
    st.tuples(
        st.one_of(st.none(), st.tuples(_numbers, _numbers)),
        st.one_of(st.none(), st.integers(-2, 2)),
        _numbers,
    ),
    max_size=12,
)


@hypothesis.given(_pods, st.sampled_from([thresholds.MEMORY, thresholds.PIDS]))
def test_agrees_with_the_comparison(
    rows: list[tuple[tuple[int, int] | None, int | None, int]], signal: str
) -> None:
    """Sorting by keys is sorting by the kubelet's comparisons; ties go by UID."""
    pods = [
        pair(
            f"{number:03}",
            None if use is None else pod_use.Use(memory=use[0], processes=use[1]),
            priority=priority,
            memory=memory,
        )
        for number, (use, priority, memory) in enumerate(rows)
    ]
    slow = sorted(pods, key=functools.cmp_to_key(functools.partial(_slowly, signal)))

    fast = [ranked.pod for ranked in ranking.rank(signal, pressure.SINGLE, reversed(pods))]
    assert [candidate for candidate, _ in slow] == fast
