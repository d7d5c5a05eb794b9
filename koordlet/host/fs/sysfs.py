"""Small readers for files that may be anything: missing, empty, binary, huge, or wrong.

Covers: text, numbers, ids, sizes, CPU sets and directory names, each a value or ``None``, with a
warning that names file and content where the file is there and makes no sense.
Does not cover: what the values mean (``host.topology.discovery`` and its scanners).

Rules:
1. A missing file is ``None`` without a warning: kernels differ. Who needs the value says what is
   unknown because of it.
2. Nothing that a file holds raises, and no file is read beyond ``LIMIT``.
3. Old kernels pad some lists with NUL bytes; those are not damage.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterable

from koordlet.host.fs import root
from koordlet.model import cpuset

#: More than the longest list of 8 192 CPUs; a larger file of this kind is damage.
LIMIT = 1 << 16

#: A machine can be damaged in more places than anybody reads about.
MAX_WARNINGS = 1000

_ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ENODEV, errno.ENXIO})
_PADDING = " \t\n\r\f\v\0"
_INTEGER = re.compile(r"-?[0-9]{1,19}\Z")
_SIZE = re.compile(r"([0-9]{1,12})([KMG]?)B?\Z", re.IGNORECASE)
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
#: What firmware and kernel write for "no such level": -1, as 16-bit and as 32-bit number, too.
_NO_ID = frozenset({-1, 0xFFFF, 0xFFFF_FFFF})


class SysfsReader:
    """Reads one machine and collects what was strange about it."""

    def __init__(self, host: root.HostRoot) -> None:
        self.host = host
        self._warnings: dict[str, None] = {}
        self._dropped = 0
        #: What got no answer.
        self.unread: set[str] = set()
        # Thousands of files of one machine hold the same few sets: parse each text once.
        self._sets: dict[tuple[str, bool], cpuset.CPUSet] = {}

    def warn(self, message: str) -> None:
        """Remember one thing that an operator should know; repeated ones count once."""
        if message in self._warnings:
            return
        if len(self._warnings) < MAX_WARNINGS:
            self._warnings[message] = None
        else:
            self._dropped += 1

    def damage(self, path: str, content: str, why: str) -> None:
        """Warn of a file whose content is no use."""
        shown = content if len(content) <= 80 else content[:77] + "..."
        self.warn(f"{path}: {why}: {shown!r}")

    def warnings(self) -> tuple[str, ...]:
        """Everything warned of, in the order of discovery."""
        more = (f"... and {self._dropped} more warnings",) if self._dropped else ()
        return (*self._warnings, *more)

    def text(self, path: root.HostPath, *, limit: int = LIMIT) -> str | None:
        """Content without padding; ``None`` if it cannot be read."""
        try:
            raw = self.host.content(path, limit)
        except OSError as error:
            if error.errno == errno.EFBIG:
                self.warn(f"{path}: more than {limit} bytes, ignored")
            elif error.errno == errno.EINVAL:
                self.warn(f"{path}: is not a regular file, ignored")
            elif error.errno not in _ABSENT:
                self.warn(f"{path}: cannot be read: {error.strerror}")
                self.silent(path, error)
            return None
        return raw.decode("utf-8", "replace").strip(_PADDING)

    def match(
        self, path: root.HostPath, pattern: re.Pattern[str], why: str
    ) -> re.Match[str] | None:
        """What of a file matches; ``why`` is what is wrong with one that does not."""
        text = self.text(path)
        match = None if text is None else pattern.match(text)
        if text is not None and match is None:
            self.damage(path, text, why)
        return match

    def integer(self, path: root.HostPath) -> int | None:
        """A whole number."""
        match = self.match(path, _INTEGER, "not a number")
        return int(match[0]) if match else None

    def ident(self, path: root.HostPath) -> int | None:
        """An id as the kernel gives it; its ways to say "none" are ``None``."""
        number = self.integer(path)
        if number is None or number in _NO_ID:
            return None
        if number < 0:
            self.damage(path, str(number), "not an id")
            return None
        return number

    def size(self, path: root.HostPath) -> int | None:
        """A size such as ``32768K``, in bytes."""
        match = self.match(path, _SIZE, "not a size")
        return int(match[1]) * _UNITS[match[2].lower()] if match else None

    def cpus(self, path: root.HostPath, *, mask: bool = False) -> cpuset.CPUSet | None:
        """A set in list form, or as a bitmap."""
        text = self.text(path)
        if text is None:
            return None
        key = (text, mask)
        known = self._sets.get(key)
        if known is not None:
            return known
        try:
            cpus = cpuset.CPUSet.parse_mask(text) if mask else cpuset.CPUSet.parse(text)
        except ValueError:
            self.damage(path, text, "not a CPU mask" if mask else "not a CPU list")
            return None
        self._sets[key] = cpus
        return cpus

    def siblings(
        self, cpu: int, where: str, chain: Iterable[tuple[str, bool]], online: cpuset.CPUSet
    ) -> cpuset.CPUSet | None:
        """The online CPUs of the first file (name, whether a bitmap) that names this CPU, too."""
        for name, mask in chain:
            path = self.host.sys(where, name)
            cpus = self.cpus(path, mask=mask)
            if cpus is None:
                continue
            if cpu in cpus:
                return cpus & online
            self.damage(path, str(cpus), f"does not name its own CPU {cpu}")
        return None

    def names(self, path: root.HostPath) -> list[str]:
        """The names in a directory; none when it cannot be listed."""
        try:
            return self.host.list(path)
        except OSError as error:
            if error.errno not in _ABSENT:
                self.warn(f"{path}: cannot be listed: {error.strerror}")
                self.silent(path, error)
            return []

    def silent(self, path: root.HostPath, error: OSError) -> None:
        """Remember a read that failed, where that is no answer."""
        if self.host.silence.met(error, gap=True):
            self.unread.add(path)


def numbered(names: Iterable[str], stem: str) -> cpuset.CPUSet:
    """The numbers N of the names ``stemN``; names that only look like it are skipped."""
    bits = 0
    start = len(stem)
    for name in names:
        digits = name[start:]
        if name.startswith(stem) and digits.isascii() and digits.isdigit() and len(digits) < 6:
            number = int(digits)
            if number < cpuset.MAX_CPUS and str(number) == digits:
                bits |= 1 << number
    return cpuset.CPUSet(bits)
