"""Limits of block devices: ``io`` of v2 and ``blkio`` of v1.

Covers: limits (blk-throttle), weights of groups, how lines are read and in which order shown.
Does not cover: costs of devices (``cost``), BFQ, ``io.latency`` (not in Debian's kernel), what a
limit does, statistics.

Kernel facts: ``block/blk-throttle.c``
(``tg_set_limit``, ``tg_set_conf``), ``block/blk-iocost.c`` (``ioc_weight_write``); 6.1.
"""

from __future__ import annotations

import dataclasses
import errno
from collections.abc import Iterable

from tests.kit.kernel import cost, devices, parsing
from tests.kit.kernel.group import Group, Knob, On, Stateful
from tests.kit.kernel.hardware import Hardware
from tests.kit.kernel.tree import refused

_U32 = (1 << 32) - 1
#: The words of ``io.max`` in their order, and what each is without a limit.
_WORDS = {"rbps": parsing.U64, "wbps": parsing.U64, "riops": _U32, "wiops": _U32}


@dataclasses.dataclass
class Limits:
    """Of one group; the device that was named last for the first time comes first."""

    #: By device: its four limits by word.
    lines: dict[str, dict[str, int]] = dataclasses.field(default_factory=dict)
    weight: int = 100
    weights: dict[str, int] = dataclasses.field(default_factory=dict)

    def line(self, number: str) -> dict[str, int]:
        """The limits of a device."""
        if number not in self.lines:
            self.lines = {number: dict(_WORDS), **self.lines}
        return self.lines[number]


class Io2(Stateful[Limits]):
    """``io.*`` of v2."""

    name = "io"

    def __init__(self, hardware: Hardware) -> None:
        super().__init__()
        self._hardware = hardware
        self._cost = cost.Cost(hardware)

    def fresh(self, group: Group) -> Limits:
        del group
        return Limits()

    def knobs(self) -> Iterable[Knob]:
        return (
            Knob("io.max", self._max, self._write_max, On.CHILDREN),
            Knob("io.weight", self._weight, self._write_weight, On.CHILDREN),
            Knob("io.stat", lambda group: ""),
            *self._cost.knobs(),
        )

    def _max(self, group: Group) -> str:
        lines = self.of[group].lines.items()
        return "".join(f"{number}{_words(words)}\n" for number, words in lines if words != _WORDS)

    def _write_max(self, group: Group, text: str) -> None:
        """All words of a line, or none."""
        number, rest = devices.split(text, self._hardware)
        line = self.of[group].line(number)
        wanted = dict(line)
        for word in rest.split():
            # The kernel looks at 26 bytes of a word, which is more than any good one has.
            name, sign, value = word[:26].partition("=")
            most = _WORDS.get(name)
            wanted_value = parsing.U64 if value == "max" else parsing.scanned(value)
            if not sign or wanted_value is None:
                raise refused(errno.EINVAL)
            if wanted_value == 0:
                raise refused(errno.ERANGE)
            if most is None or wanted_value == 1:
                raise refused(errno.EINVAL)
            wanted[name] = min(wanted_value, most)
        line.update(wanted)

    def _weight(self, group: Group) -> str:
        state = self.of[group]
        lines = (f"{number} {weight}\n" for number, weight in state.weights.items())
        return f"default {state.weight}\n" + "".join(lines)

    def _write_weight(self, group: Group, text: str) -> None:
        state = self.of[group]
        if ":" not in text:
            state.weight = _weighed(text.removeprefix("default "))
            return
        number, rest = devices.split(text, self._hardware)
        if number not in self._cost.devices:
            raise refused(errno.EOPNOTSUPP)
        if rest.lstrip().startswith("default"):
            state.weights.pop(number, None)
        else:
            state.weights[number] = _weighed(rest)


class Blkio1(Stateful[Limits]):
    """``blkio.throttle.*`` of v1: a file for each limit, of all groups."""

    name = "blkio"

    _FILES = (("read_bps", "rbps"), ("write_bps", "wbps"))
    _COUNTS = (("read_iops", "riops"), ("write_iops", "wiops"))

    def __init__(self, hardware: Hardware) -> None:
        super().__init__()
        self._hardware = hardware

    def fresh(self, group: Group) -> Limits:
        del group
        return Limits()

    def knobs(self) -> Iterable[Knob]:
        for file, word in (*self._FILES, *self._COUNTS):
            yield self._limit(f"blkio.throttle.{file}_device", word)

    def _limit(self, name: str, word: str) -> Knob:
        most = _WORDS[word]

        def read(group: Group) -> str:
            lines = self.of[group].lines.items()
            return "".join(f"{n} {words[word]}\n" for n, words in lines if words[word] != most)

        def write(group: Group, text: str) -> None:
            number, rest = devices.split(text, self._hardware)
            value = parsing.scanned(rest)
            if value is None:
                raise refused(errno.EINVAL)
            # 0 is no limit; what is too large for the counters loses its upper half.
            self.of[group].line(number)[word] = (value or parsing.U64) & most

        return Knob(name, read, write)


def _words(line: dict[str, int]) -> str:
    return "".join(
        f" {word}={'max' if line[word] == most else line[word]}" for word, most in _WORDS.items()
    )


def _weighed(text: str) -> int:
    value = parsing.scanned(text)
    if value is None or not 1 <= value <= 10_000:
        raise refused(errno.EINVAL)
    return value
