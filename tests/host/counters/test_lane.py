"""Page cache is read of the groups whose memory moved; of the others, after half a minute."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from koordlet.host.cgroup import hierarchies
from koordlet.host.counters import groups, lane
from koordlet.model import counters, meter
from tests.host.counters.test_groups import reader, values
from tests.kit import counting
from tests.kit.kernel.machine import Cgroup

NAMES = tuple(f"g{number}" for number in range(12))
KEYS = ("inactive_anon", "active_anon", "unevictable", "inactive_file", "active_file")
USE = {"v1": "memory.usage_in_bytes", "v2": "memory.current"}
EVERY, STILL = 6, lane.STILL


class Node:
    """Twelve groups with memory, and who reads them."""

    def __init__(self, version: Cgroup, handles: int) -> None:
        self.version: Cgroup = version
        self.host = counting.machine(version, *NAMES)
        for name in NAMES:
            self.says(name, used=100, cache=1)
        self.look: groups.GroupReader = reader(self.host, handles=handles)
        self.tick = 0

    def path(self, name: str, file: str) -> str:
        return f"/sys/fs/cgroup/{'memory/' if self.version == 'v1' else ''}{name}/{file}"

    def says(self, name: str, *, used: int | None = None, cache: int | None = None) -> None:
        """From now on so many bytes in all, and so many pages of each kind."""
        if used is not None:
            self.host.texts[self.path(name, USE[self.version])] = f"{used}\n"
        if cache is not None:
            text = "".join(f"{key} {cache}\ntotal_{key} {cache}\n" for key in KEYS)
            self.host.texts[self.path(name, "memory.stat")] = text

    def read(self) -> Sequence[counters.Batch]:
        """What the next tick says."""
        self.tick += 1
        return self.look.read(self.tick - 1).batches

    def round(self, *, ticks: int = EVERY, comparing: bool = False) -> dict[str, float]:
        """Page cache as so many ticks say it."""
        cache: dict[str, float] = {}
        for _ in range(ticks):
            cache |= values(self.look.read(self.tick, comparing=comparing), meter.MEMORY_CACHE)
            self.tick += 1
        return cache


#: Enough for all files; for all but most of memory.stat.
_ALL, _FEW = 1000, 28
#: Ticks after which all turns of all files came equally often, those that rest included.
_WHOLE = 5 * EVERY * STILL


@pytest.fixture(params=[("v1", _ALL), ("v2", _ALL), ("v1", _FEW), ("v2", _FEW)])
def node(request: pytest.FixtureRequest) -> Iterator[Node]:
    """A node whose first rounds are over."""
    made = Node(*request.param)
    made.round(ticks=EVERY * STILL * 2)
    yield made
    made.look.close()


def test_what_stands_still_is_said_again(node: Node) -> None:
    """Each turn says what its groups said; of five rounds one reads the files."""
    assert dict.fromkeys(NAMES, 2.0) == node.round(ticks=EVERY * STILL)
    before = node.look.counts["read"]
    node.round(ticks=_WHOLE)
    still = node.look.counts["read"] - before

    before, rounds = node.look.counts["read"], _WHOLE // EVERY
    for used in range(rounds):
        for name in NAMES:
            node.says(name, used=used)
        node.round()
    moving = node.look.counts["read"] - before

    assert len(NAMES) * (rounds - rounds // STILL) == moving - still


def test_what_moves_is_read(node: Node) -> None:
    """More bytes in all: its parts are read at its turn, and only its."""
    node.says("g3", used=200, cache=50)
    node.says("g4", cache=70)

    moved = {name: value for name, value in node.round().items() if value != 2.0}

    late = {"g4": 140.0} if "g4" in moved else {}  # where that was the round in which all are read
    assert {"g3": 100.0, **late} == moved


def test_where_one_moves_only_it_is_read(node: Node) -> None:
    """With a descriptor or without: the others' files are left alone but in the fifth round."""
    reads = []
    for names in ([], ["g7"]):
        before = node.look.counts["read"]
        for used in range(_WHOLE // EVERY):
            for name in names:
                node.says(name, used=used)
            node.round()
        reads.append(node.look.counts["read"] - before)

    still, moving = reads

    assert moving - still == _WHOLE // EVERY * (STILL - 1) // STILL


def test_what_is_said_again_is_not_understood_again(node: Node) -> None:
    """With a descriptor or without: a turn is the batch that it was, until one says otherwise."""
    first, second = (_processes(node) for _ in range(2))
    node.host.texts[node.path("g2", "pids.current").replace("/memory/", "/pids/")] = "77\n"
    node.round(ticks=_WHOLE)
    third = _processes(node)

    assert [a is b for a, b in zip(first, second, strict=True)] == [True] * 10
    moved = [b.values for a, b in zip(second, third, strict=True) if a is not b]
    assert [77.0 in values for values in moved] == [True]


def _processes(node: Node) -> list[counters.Batch]:
    """The batches of all turns of that file."""
    made = [batch for _ in range(10) for batch in node.read() if batch.meter is meter.PIDS]
    return sorted(made, key=lambda batch: batch.start)


def test_a_new_group_is_read_at_its_first_turn(node: Node) -> None:
    """That of others is remembered, it is not; its file may come later than the group."""
    node.round(ticks=1)  # at each read that follows, all others' memory is known
    node.says("h", used=100, cache=30)
    late = node.path("h", "memory.stat")
    text, node.host.texts[late] = node.host.texts[late], None
    for hierarchy in hierarchies.discover(node.host).hierarchies:
        node.host.mkdir(node.host.at(f"{hierarchy.mount}/h"))
    node.look.follow(counting.found(node.host))

    assert "h" not in node.round()
    node.host.texts[late] = text
    assert node.round()["h"] == 60.0


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_cpu_and_memory_of_groups_to_come_have_descriptors_left(version: Cgroup) -> None:
    """An eighth is not for what is read seldom, however many groups there are."""
    node = Node(version, _FEW)
    node.round(ticks=_WHOLE)
    before = node.look.handles
    for hierarchy in hierarchies.discover(node.host).hierarchies:
        node.host.mkdir(node.host.at(f"{hierarchy.mount}/h"))
    node.look.follow(counting.found(node.host))
    node.round(ticks=_WHOLE)

    assert (before, node.look.handles) == (_FEW - _FEW // 8, _FEW - _FEW // 8 + 2)
    node.look.close()


def test_what_moves_inside_only(node: Node) -> None:
    """The same bytes in all, other kinds: seen half a minute later at the latest."""
    for name in NAMES:
        node.says(name, cache=9)

    assert dict.fromkeys(NAMES, 18.0) == node.round(ticks=EVERY * STILL) | node.round()


def test_asked_for_now(node: Node) -> None:
    """Where workloads are compared, every file is read, whatever another says."""
    for name in NAMES:
        node.says(name, cache=9)

    assert dict.fromkeys(NAMES, 18.0) == node.round(ticks=1, comparing=True)


@pytest.mark.parametrize("whole", [True, False])
def test_who_goes_and_who_comes(node: Node, *, whole: bool) -> None:
    """A group that vanished, or a file of it, says nothing more, and again when it is back."""
    files = ["memory.stat", *([USE[node.version]] if whole else [])]
    node.host.texts |= dict.fromkeys(node.path("g5", file) for file in files)
    node.says("g5", used=None if whole else 50)
    assert set(NAMES) - {"g5"} == node.round(ticks=_WHOLE).keys()

    node.says("g5", used=100, cache=4)

    until_looked_for = 600 + EVERY - node.tick
    assert {n: v for n, v in node.round(ticks=until_looked_for).items() if v != 2.0} == {"g5": 8.0}


def test_damage(node: Node) -> None:
    """A text that says nothing costs its own group, and is counted."""
    node.says("g6", used=300)
    node.host.texts[node.path("g6", "memory.stat")] = "nonsense\n"
    before = node.look.counts["damaged"]

    cache = node.round()

    assert dict.fromkeys(set(NAMES) - {"g6"}, 2.0) == cache
    assert node.look.counts["damaged"] > before


def test_damage_that_is_over(node: Node) -> None:
    """It is looked at each time until it is mended, though the group's memory stands still."""
    node.says("g6", used=300)
    node.host.texts[node.path("g6", "memory.stat")] = "nonsense\n"
    node.round()
    node.says("g6", cache=4)

    assert dict.fromkeys(NAMES, 2.0) | {"g6": 8.0} == node.round()


def test_damage_beside_memory_that_stands_still(node: Node) -> None:
    """Once it was seen, no turn says again what the file said before."""
    node.host.texts[node.path("g6", "memory.stat")] = "nonsense\n"
    node.round(ticks=EVERY * STILL * 2)

    assert set(NAMES) - {"g6"} == node.round(ticks=EVERY * STILL).keys()


@pytest.mark.parametrize("handles", [0, 1, _ALL])
def test_a_file_that_is_gone_is_not_said_from_memory(handles: int) -> None:
    """Nor when it is looked for again after ten minutes."""
    host = counting.machine("v2", *NAMES)
    path = "/sys/fs/cgroup/g9/pids.current"
    host.texts = {path: "7\n"}
    look = reader(host, handles=handles)
    for tick in range(102):
        look.read(tick)
    host.texts = {path: None}
    for tick in range(102, 600):
        look.read(tick)

    heard = {tick: values(look.read(tick), meter.PIDS).get("g9") for tick in range(600, 1200)}

    assert {tick: pids for tick, pids in heard.items() if pids is not None} == {}


def test_many_move(node: Node) -> None:
    """Where most do, all are read."""
    for name in NAMES:
        node.says(name, used=500, cache=3)

    assert dict.fromkeys(NAMES, 6.0) == node.round()
