"""The files that count what a group uses: which meters each has, how often it is read.

Covers: names on v1 and v2, parsers of whole batches. Does not cover: reading (``groups``).

How often: CPU time says at once that something is wrong, so it is read at every tick, and memory at
every other one; the rest in turns, a fraction of the groups at each tick, because each costs as
much as those, ``memory.stat`` five times as much. On v2 one read of ``cpu.stat`` brings the
throttling, too. Turns of a group coincide: a working set is memory less page cache of one moment.

Kernel facts: Documentation/admin-guide/cgroup-v1/{cpuacct,memory,blkio-controller}.rst,
cgroup-v2.rst. ``cpuacct.stat`` counts in USER_HZ; ``memory.numa_stat`` counts pages on v1 and bytes
on v2. The pressure files of v1 groups are of Alibaba's kernels, kidled's file as well.
"""

from __future__ import annotations

import operator
import os
import re
from collections.abc import Callable, Sequence

from koordlet.host.counters import cold_memory, procstat
from koordlet.model import cgroup, counters, meter
from koordlet.model.record import dataclass

#: Values by meter, for a batch of texts.
Columns = Sequence[Sequence[float]]

_NANO, _MICRO = 1e-9, 1e-6
_TICK = 1.0 / os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGESIZE")
#: Ticks between two reads of a file that is opened anew each time.
_SELDOM = 30
#: … and of what is not of each second.
_RARE = 5
#: Bytes of a file that is read: what is small comes from Python's own pools, what is not from
#: malloc, and most of what is read in a tick are single numbers of at most 20 digits.
_SIZE, _SIZE_OF_NUMBER = 4096, 64
#: A file with a line for each disk, of which a machine may have hundreds.
_SIZE_OF_DISKS = 1 << 15


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class File:
    """One row of the table."""

    controller: str
    unified: bool
    name: str
    meters: tuple[meter.Meter, ...]
    #: Ticks between two reads of one group's file.
    every: int
    #: Values of whole batches. Raises where one text is not what it should be.
    columns: Callable[[Sequence[bytes]], Columns]
    #: What one read asks for: a file that says more is cut, and that is damage.
    size: int = _SIZE

    @property
    def kept(self) -> bool:
        """True if a descriptor is worth its page of kernel memory: not for one read in 30 ticks."""
        return self.every < _SELDOM

    @property
    def rests(self) -> bool:
        """True if a group that says the same may be asked seldom: not CPU, memory, pressure."""
        known = self.columns is not _pressures and self.follows is None
        return known and self.kept and not self.often

    @property
    def often(self) -> bool:
        """True if it is read each second or two: CPU and memory."""
        return self.every < _RARE

    @property
    def short(self) -> bool:
        """True if the file is a single number."""
        return self.size == _SIZE_OF_NUMBER

    @property
    def compared(self) -> bool:
        """True if eviction ranks workloads by this file."""
        return self.meters in ((meter.MEMORY,), _STAT, (meter.PIDS,))

    @property
    def urgent(self) -> bool:
        """True if a new cgroup needs it at once, before limits are set."""
        return self.meters == (meter.MEMORY,)

    @property
    def summed(self) -> bool:
        """True if what a group uses is counted in those above it, too: CPU time of each tick."""
        return self.meters[0] == meter.CPU

    @property
    def follows(self) -> tuple[meter.Meter, ...] | None:
        """The meters of the file that tells when this one is worth a read."""
        return (meter.MEMORY,) if self.meters == _STAT else None

    def here(self, layout: cgroup.Layout) -> cgroup.Hierarchy | None:
        """The hierarchy in which groups have this file, on this machine."""
        where = layout.holder(self.controller)
        return where if where is not None and where.unified is self.unified else None


class Single:
    """A file of one number."""

    def __init__(self, scale: float = 1.0) -> None:
        self._scale = scale

    def __call__(self, texts: Sequence[bytes]) -> Columns:
        numbers = list(map(int, texts))
        if max(numbers, default=0) >> 64:
            raise ValueError("larger than a kernel counter, or truncated")
        return (numbers if self._scale == 1.0 else [number * self._scale for number in numbers],)


class KeyedFile:
    """A file of lines ``key number``. Where keys stand is learned once for each number of lines.

    Only the part between the first and the last key is taken apart: ``memory.stat`` has 40 lines,
    of which five are wanted. A key that this kernel does not have is NaN. Where everything stands
    as in the text before, lines are not even counted.
    """

    _MAX_LAYOUTS = 16

    def __init__(self, *sums: tuple[float, tuple[bytes, ...]]) -> None:
        #: For each meter its scale, and the keys whose numbers are added up.
        self._sums = sums
        self._layouts: dict[int, _Layout] = {}
        #: That of the last text, if it had all keys.
        self._usual: _Layout | None = None

    def __call__(self, texts: Sequence[bytes]) -> Columns:
        parts = [self._part(text) for text in texts]
        layout = parts[0][0] if parts else None
        if layout is None:
            return []
        if all(part_layout is layout for part_layout, _ in parts):
            return layout.columns([words for _, words in parts])
        # Kernels write a file alike for all groups: others are those that were just made or go.
        rows = (zip(*part_layout.columns([words]), strict=True) for part_layout, words in parts)
        return list(zip(*(row for part_rows in rows for row in part_rows), strict=True))

    def _part(self, text: bytes) -> tuple[_Layout, list[bytes]]:
        """The part that is wanted, and where the keys stand in it."""
        layout = self._usual
        if layout is not None and layout.fits(words := layout.words(text)):
            return layout, words
        lines = text.count(b"\n")
        layout = self._layouts.get(lines)
        words = layout.words(text) if layout is not None else []
        if layout is None or not layout.fits(words):
            layout = self._layouts[lines] = self._learn(text)
            words = layout.words(text)
        self._usual = layout if layout.whole else None
        return layout, words

    def _learn(self, text: bytes) -> _Layout:
        words = text.split()
        if not words or len(words) % 2:
            raise ValueError(f"expected lines of a key and a number: {words[:4]!r}")
        positions = {key: 2 * n for n, key in enumerate(words[::2])}
        chosen = [key for _, keys in self._sums for key in keys if key in positions]
        if not chosen:
            raise ValueError(f"contains none of the expected keys: {words[:4]!r}")
        if len(self._layouts) >= self._MAX_LAYOUTS:
            self._layouts.clear()
        first = min(positions[key] for key in chosen)
        # Two, so that itemgetter returns a tuple.
        padded = chosen if len(chosen) > 1 else chosen * 2
        missing = len(padded)
        return _Layout(
            anchor=b"\n" + words[first] + b" " if first else b"",
            most=max(positions[key] for key in chosen) - first + 2,
            keys=operator.itemgetter(*(positions[key] - first for key in padded)),
            wanted=tuple(padded),
            numbers=operator.itemgetter(*(positions[key] - first + 1 for key in padded)),
            sums=tuple(
                (scale, tuple(padded.index(key) if key in positions else missing for key in keys))
                for scale, keys in self._sums
            ),
        )


@dataclass(frozen=True, slots=True)
class _Layout:
    """Positions of a file's keys, counted from the first needed one."""

    #: What the part begins with; empty for the whole text.
    anchor: bytes
    #: Words of the part.
    most: int
    keys: Callable[[list[bytes]], tuple[bytes, ...]]
    wanted: tuple[bytes, ...]
    numbers: Callable[[list[bytes]], tuple[bytes, ...]]
    #: By meter: its scale, and which of the numbers are added up; one beyond the last is missing.
    sums: tuple[tuple[float, tuple[int, ...]], ...]

    @property
    def whole(self) -> bool:
        """True if no key is missing."""
        return all(len(self.wanted) not in at for _, at in self.sums)

    def fits(self, words: list[bytes]) -> bool:
        """True if the keys are at these positions."""
        return len(words) >= self.most and self.keys(words) == self.wanted

    def words(self, text: bytes) -> list[bytes]:
        """The part, taken apart."""
        start = text.find(self.anchor)
        return text[start:].split(None, self.most) if start >= 0 else []

    def columns(self, parts: Sequence[list[bytes]]) -> list[Sequence[float]]:
        """The values of each meter."""
        numbers = [list(map(int, column)) for column in zip(*map(self.numbers, parts), strict=True)]
        scaled: list[Sequence[float]] = []
        for scale, at in self.sums:
            if len(numbers) in at:
                scaled.append([counters.NAN] * len(parts))
                continue
            column = numbers[at[0]]
            if len(at) > 1:
                column = list(map(sum, zip(*(numbers[n] for n in at), strict=True)))
            scaled.append(column if scale == 1 else [scale * number for number in column])
        return scaled


def _pressures(texts: Sequence[bytes]) -> Columns:
    return list(zip(*map(procstat.pressure, texts), strict=True))


_V1_IO = re.compile(rb" (Read|Write) (\d+)")
#: Nothing was done: no line, no bytes, or lines that name a device and no more (Linux before 5.15).
_NO_IO = re.compile(rb"(?:\s|\d+:\d+\s)*(?:Total 0\s*)?")
_V2_IO = re.compile(rb"\b(rbytes|wbytes)=(\d+)")


def _io(pattern: re.Pattern[bytes], read: bytes) -> Callable[[Sequence[bytes]], Columns]:
    """Bytes read and written, over all devices. A group that did no I/O has an empty file."""

    def columns(texts: Sequence[bytes]) -> Columns:
        rows = []
        for text in texts:
            if len(text) >= _SIZE_OF_DISKS:
                raise ValueError("more disks than koordlet reads")
            pairs = pattern.findall(text)
            if not pairs and not _NO_IO.fullmatch(text):
                raise ValueError(f"no I/O counters: {text[:60]!r}")
            into = [0, 0]
            for what, number in pairs:
                into[what != read] += int(number)
            rows.append(into)
        return list(zip(*rows, strict=True))

    return columns


def numa(nodes: Sequence[int], *, unified: bool) -> File:
    """Memory by NUMA node, on a machine with these: their numbers may have gaps (0, 8 on POWER)."""
    per_node = re.compile(rb" N(\d+)=(\d+)")
    places = {b"%d" % node: at for at, node in enumerate(nodes)}

    def columns(texts: Sequence[bytes]) -> Columns:
        rows = []
        for text in texts:
            # The kernel says nothing of a node without memory, and that may be the first.
            if not per_node.search(text):
                raise ValueError(f"no memory by node: {text[:60]!r}")
            sums = [0] * len(nodes)
            for line in text.splitlines():
                if line.startswith((b"hierarchical_total=", b"anon ", b"file ", b"slab_")):
                    for node, number in per_node.findall(line):
                        if node in places:
                            sums[places[node]] += int(number)
            rows.append([amount if unified else amount * _PAGE for amount in sums])
        return list(zip(*rows, strict=True))

    meters = tuple(meter.numa_memory(node) for node in nodes)
    return File(
        controller="memory",
        unified=unified,
        name="memory.numa_stat",
        meters=meters,
        every=_SELDOM,
        columns=columns,
        size=1 << 16,
    )


_STAT = (meter.MEMORY_INACTIVE_FILE, meter.MEMORY_CACHE, meter.MEMORY_ANON)


def _memory_stat(prefix: bytes) -> KeyedFile:
    anon = (b"inactive_anon", b"active_anon", b"unevictable")
    file = (b"inactive_file", b"active_file")
    return KeyedFile(
        (1, (prefix + b"inactive_file",)),
        (1, tuple(prefix + key for key in file)),
        (1, tuple(prefix + key for key in anon)),
    )


_THROTTLING = (meter.PERIODS, meter.THROTTLED_PERIODS, meter.THROTTLED_TIME)


_V1_DISKS, _V2_DISKS = "blkio.throttle.io_service_bytes_recursive", "io.stat"
_SIZES = dict.fromkeys((_V1_DISKS, _V2_DISKS), _SIZE_OF_DISKS)

_Row = tuple[str, str, int, tuple[meter.Meter, ...], Callable[[Sequence[bytes]], Columns]]


def table() -> tuple[File, ...]:
    """Every file, of both versions; parsers that learn are new for each reader."""
    v1: tuple[_Row, ...] = (
        ("cpuacct", "cpuacct.usage", 1, (meter.CPU,), Single(_NANO)),
        ("memory", "memory.usage_in_bytes", 2, (meter.MEMORY,), Single()),
        ("memory", "memory.stat", 6, _STAT, _memory_stat(b"total_")),
        (
            "cpu",
            "cpu.stat",
            5,
            _THROTTLING,
            KeyedFile(
                (1, (b"nr_periods",)), (1, (b"nr_throttled",)), (_NANO, (b"throttled_time",))
            ),
        ),
        (
            "cpuacct",
            "cpuacct.stat",
            10,
            (meter.CPU_USER, meter.CPU_SYSTEM),
            KeyedFile((_TICK, (b"user",)), (_TICK, (b"system",))),
        ),
        ("pids", "pids.current", 10, (meter.PIDS,), Single()),
        (
            "blkio",
            _V1_DISKS,
            10,
            (meter.IO_READ, meter.IO_WRITE),
            _io(_V1_IO, b"Read"),
        ),
        ("memory", "memory.oom_control", 10, (meter.OOM_KILLS,), KeyedFile((1, (b"oom_kill",)))),
        (
            "memory",
            cold_memory.FILE,
            _SELDOM,
            (meter.MEMORY_COLD,),
            lambda texts: (list(map(cold_memory.idle, texts)),),
        ),
        *(
            ("cpuacct", f"{stall.resource}.pressure", 10, stall.meters, _pressures)
            for stall in meter.PRESSURES
        ),
    )
    v2: tuple[_Row, ...] = (
        (
            "cpuacct",
            "cpu.stat",
            1,
            (meter.CPU, meter.CPU_USER, meter.CPU_SYSTEM, *_THROTTLING),
            KeyedFile(
                *((_MICRO, (key,)) for key in (b"usage_usec", b"user_usec", b"system_usec")),
                *((1, (key,)) for key in (b"nr_periods", b"nr_throttled")),
                (_MICRO, (b"throttled_usec",)),
            ),
        ),
        ("memory", "memory.current", 2, (meter.MEMORY,), Single()),
        ("memory", "memory.stat", 6, _STAT, _memory_stat(b"")),
        ("pids", "pids.current", 10, (meter.PIDS,), Single()),
        ("io", _V2_DISKS, 10, (meter.IO_READ, meter.IO_WRITE), _io(_V2_IO, b"rbytes")),
        ("memory", "memory.events", 5, (meter.OOM_KILLS,), KeyedFile((1, (b"oom_kill",)))),
        *(
            ("", f"{stall.resource}.pressure", 10, stall.meters, _pressures)
            for stall in meter.PRESSURES
        ),
    )
    return (*(_row(row, unified=False) for row in v1), *(_row(row, unified=True) for row in v2))


def _row(row: _Row, *, unified: bool) -> File:
    controller, name, every, meters, columns = row
    return File(
        controller=controller,
        unified=unified,
        name=name,
        meters=meters,
        every=every,
        columns=columns,
        size=_SIZES.get(name, _SIZE_OF_NUMBER if isinstance(columns, Single) else _SIZE),
    )
