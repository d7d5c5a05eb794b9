"""CPU time below a group that stands still is not read, and nothing that was charged is missed."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

import pytest

from koordlet.host.counters import quiet_groups
from koordlet.model import meter
from tests.host.counters.test_groups import CPU, reader, said, values
from tests.kit import counting
from tests.kit.kernel.machine import Cgroup

PODS = 16
#: Containers first, as in slots that were given again: a descriptor is its place here.
PATHS = (
    *(f"top/p{pod}/c{number}" for pod in range(PODS) for number in range(2)),
    *(f"top/p{pod}" for pod in range(PODS)),
    "top",
)
READY = (list(range(len(PATHS))), list(range(len(PATHS))))


class Kernel:
    """Charges CPU time to a group and all above it, also between two reads of one batch."""

    def __init__(self, restless: float = 0.0) -> None:
        self.used = Counter[str]()
        self.random = random.Random(11)
        self.restless = restless
        #: What a container had used when the group above it was read.
        self.due: dict[str, int] = {}
        self.reads = 0

    def charge(self, path: str) -> None:
        while path:
            self.used[path] += 1
            path = path.rpartition("/")[0]

    def read(self, handles: Sequence[int]) -> list[bytes | None]:
        return [self._text(PATHS[handle]) for handle in handles]

    def _text(self, path: str) -> bytes:
        self.reads += 1
        if self.random.random() < self.restless:
            self.charge(self.random.choice(PATHS[: 2 * PODS]))
        self.due |= {other: self.used[other] for other in PATHS if other.startswith(f"{path}/c")}
        return b"%d" % self.used[path]


def test_nothing_is_missed_that_was_charged_before_the_group_above_was_read() -> None:
    """In any order of charges and reads, with few and with many groups that run."""
    for restless in (0.01, 0.02, 0.3):
        kernel, groups, every = Kernel(restless), quiet_groups.QuietGroups(PATHS), 0
        for tick in range(400):
            kernel.due.clear()
            texts = dict(zip(PATHS, groups.read(tick, READY, kernel.read), strict=True))
            late = [path for path, due in kernel.due.items() if int(texts[path] or b"") < due]
            assert not late, tick
            every += len(PATHS)
        assert kernel.reads < every or restless == 0.3


def test_of_a_node_that_stands_still_pods_are_read_and_a_fifth_of_the_containers() -> None:
    """Whether anything moved is read at the pods."""
    kernel, groups = Kernel(), quiet_groups.QuietGroups(PATHS)
    groups.read(0, READY, kernel.read)
    kernel.reads = 0
    for tick in range(quiet_groups.ROUND):
        groups.read(tick, READY, kernel.read)

    assert kernel.reads == quiet_groups.ROUND * (PODS + 1) + 2 * PODS


def test_of_a_pod_that_ran_all_containers_are_read() -> None:
    """Which of them ran only they say."""
    kernel, groups = Kernel(), quiet_groups.QuietGroups(PATHS)
    groups.read(0, READY, kernel.read)
    kernel.charge("top/p3/c1")
    texts = groups.read(0, READY, kernel.read)

    assert texts[PATHS.index("top/p3/c1")] == b"1"


def all_ran(kernel: Kernel, groups: quiet_groups.QuietGroups) -> None:
    """A tick in which nothing could be left out."""
    groups.read(0, READY, kernel.read)
    for pod in range(PODS):
        kernel.charge(f"top/p{pod}/c0")
    groups.read(1, READY, kernel.read)


def test_where_all_run_nobody_looks_for_some_ticks_what_stands_still() -> None:
    """Comparing costs something as well."""
    kernel, groups = Kernel(), quiet_groups.QuietGroups(PATHS)
    all_ran(kernel, groups)
    reads = []
    for tick in range(20):
        kernel.reads = 0
        groups.read(tick, READY, kernel.read)
        reads.append(kernel.reads < len(PATHS))

    assert reads == [False] * 11 + [True] * 9


def test_what_was_read_meanwhile_is_not_taken_back() -> None:
    """Throttling that no CPU time goes with, of a container that stands still afterwards."""
    kernel, groups = Kernel(), quiet_groups.QuietGroups(PATHS)
    all_ran(kernel, groups)
    kernel.used["top/p0/c0"] = 7
    texts = [groups.read(tick, READY, kernel.read)[0] for tick in range(1, 21)]

    assert texts == [b"7"] * 20


def test_after_a_change_of_the_open_files_all_are_read() -> None:
    """A descriptor may be another group's then."""
    kernel, groups = Kernel(), quiet_groups.QuietGroups(PATHS)
    groups.read(0, READY, kernel.read)
    kernel.used["top/p0/c0"] = 7
    texts = groups.read(1, (READY[0], READY[1].copy()), kernel.read)

    assert texts[0] == b"7"


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_a_reader_leaves_out_what_stands_still_and_reads_it_within_a_round(version: Cgroup) -> None:
    """The container's file alone changes, as that of v2 does when it is throttled."""
    host = counting.machine(version, "pod", "pod/a", "pod/b")
    for number, name in enumerate(("pod", "pod/a", "pod/b"), 1):
        host.texts[CPU[version].format(name)] = said(version, number)
    look = reader(host)
    look.read(0)
    host.texts[CPU[version].format("pod/a")] = said(version, 9)
    seen = [values(look.read(tick), meter.CPU)["pod/a"] for tick in range(1, 6)]
    assert sorted(seen) == seen
    assert {2.0, 9.0} == set(seen)

    host.texts[CPU[version].format("pod/a")] = said(version, 11)
    host.texts[CPU[version].format("pod")] = said(version, 3)
    assert values(look.read(6), meter.CPU) == {"pod": 3.0, "pod/a": 11.0, "pod/b": 3.0}


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_what_a_thorough_read_said_is_not_taken_back(version: Cgroup) -> None:
    """A period of a quota ends after a container has stopped: no CPU time goes with that."""
    host = counting.machine(version, "pod", "pod/a")
    look = reader(host)
    host.texts[CPU[version].format("pod/a")] = said(version, 2)
    look.read(0)
    host.texts[CPU[version].format("pod/a")] = said(version, 9)
    look.read(1, thorough=True)

    seen = [values(look.read(tick), meter.CPU)["pod/a"] for tick in range(2, 7)]
    assert seen == [9.0] * 5
