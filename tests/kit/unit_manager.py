"""A systemd in memory, as far as limits of units are concerned; it may be the last thing one asks.

Covers: properties of units, and the files that they become. Does not cover: its protocol
(``tests.host.systemd.test_bus``), units that come and go (``tests.vm``).
"""

from __future__ import annotations

import errno
from collections.abc import Iterable, Mapping, Sequence
from typing import Self

from koordlet.apply import units
from koordlet.host.fs import root
from koordlet.host.systemd import bus, dbus
from koordlet.model import cpuset
from tests.kit import dying

#: What is said of a property that is not set.
_UNSET: Mapping[str, dbus.Variant] = {
    "AllowedCPUs": dbus.Variant("ay", b""),
    "CPUWeight": dbus.Variant("t", units.INFINITY),
}
#: The first version with ``CPUWeight=idle``.
_KNOWS_IDLE = 252
_FILES = {"AllowedCPUs": "cpuset.cpus", "CPUWeight": "cpu.weight"}


class Systemd:
    """What it knows of its units, and whom it kills: the n-th asker who sets something."""

    def __init__(
        self, host: root.HostRoot, places: Mapping[str, str], *, version: int = 252
    ) -> None:
        self._host = host
        self._version = version
        #: Unit to the directory of its group.
        self._places = places
        self._said: dict[tuple[str, str], dbus.Variant] = {}
        #: How often something was set, and at which time the asker dies, before or after it.
        self.asked = 0
        self.deadly: tuple[int, bool] | None = None

    @property
    def set_now(self) -> Mapping[tuple[str, str], object]:
        """Unit and property to the value of what is set."""
        return {
            key: setting.value for key, setting in self._said.items() if setting != _UNSET[key[1]]
        }

    def get(self, unit: str, name: str) -> dbus.Variant:
        """One property."""
        return self._said.get((unit, name), _UNSET[name])

    def set(self, unit: str, name: str, value: dbus.Variant) -> None:
        """Keep it and write the file."""
        self.asked += 1
        dies, done = self.deadly or (0, False)
        if self.asked == dies and not done:
            raise dying.Killed
        idle = name == "CPUWeight" and value.value == 0
        if idle and self._version < _KNOWS_IDLE:
            raise OSError(errno.EINVAL, "Value specified in CPUWeight is out of range")
        self._said[unit, name] = value
        if name == "CPUWeight":
            self._write(unit, "cpu.idle", str(int(idle)))
        text = "" if idle else _text(value)
        if text:
            self._write(unit, _FILES[name], text)
        if self.asked == dies:
            raise dying.Killed

    def _write(self, unit: str, file: str, text: str) -> None:
        self._host.write(self._host.at(f"{self._places[unit]}/{file}"), text.encode())


def _text(value: dbus.Variant) -> str:
    """As it is written: a weight that is unset is the usual one, an unset set stays in the file."""
    if isinstance(value.value, bytes):
        return str(cpuset.CPUSet(int.from_bytes(value.value, "little")))
    return "100" if value.value == units.INFINITY else str(value.value)


class Connection(bus.BusConnection):
    """One errand."""

    def __init__(self, to: Systemd) -> None:
        self._to = to

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *about: object) -> None:
        pass

    def properties(self, unit: str, names: Iterable[str]) -> dict[str, dbus.Variant]:
        """Of a unit that it has."""
        return {name: self._to.get(unit, name) for name in names}

    def set_properties(self, unit: str, values: Sequence[tuple[str, dbus.Variant]]) -> None:
        """One after the other."""
        for name, value in values:
            self._to.set(unit, name, value)


class Manager(units.Manager):
    """Speaks to the one in memory, on a machine that has no ``/run``."""

    def __init__(self, host: root.HostRoot, to: Systemd) -> None:
        super().__init__(host, connect=lambda: Connection(to), pause=lambda _: None)

    @property
    def ready(self) -> bool:
        """It always answers."""
        return True
