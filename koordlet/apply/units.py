"""Limits of systemd's own units, set through systemd.

Covers: whether systemd manages a group here, turning a write into properties, setting them and
putting them back, what to do while systemd does not answer, the table of properties.
Does not cover: the conversation (``host.systemd.bus``).

Rules:
1. A group is systemd's when systemd runs here, on cgroup v2, and the group is a unit (a slice, a
   service or a scope, and not what one of them has made for itself). On v1 systemd does not manage
   cpusets, and shares its files with us otherwise: they are written directly there.
2. Properties are set at runtime: they survive ``daemon-reload`` and a restart of the unit, and end
   with the boot. systemd hands controllers down as a property needs them.
3. Putting back sets what systemd said before, where it still says what we set. A drop-in below
   ``/run`` stays and says the same; ``systemctl revert`` would take away the operator's as well.
4. A systemd that is absent or does not answer is ``Unsupported``, a value. Files are written
   directly then, and it is asked again after a while.

A property is spelled as its D-Bus type and value: ``t:100``, ``ay:0f`` (bytes in hex, the lowest
CPU first), so that the journal can keep it. Types and names: org.freedesktop.systemd1(5). Files
without a property (``cpu.max.burst``, ``cpuset.cpus.partition``, …) are written directly.
"""

from __future__ import annotations

import contextlib
import errno
import time
from collections.abc import Callable, Iterator, Mapping

from koordlet.apply import kinds
from koordlet.host.fs import root
from koordlet.host.systemd import bus, dbus
from koordlet.model import absence, action, cgroup, cpuset, knob
from koordlet.model.record import dataclass
from koordlet.state import journal

FEATURE = "systemd.properties"
#: Seconds until a systemd that did not answer is asked again.
PAUSE = 60.0
#: systemd answers first and writes the file in its next turn: how long that is looked for.
_LOOKS, _LOOK_SECONDS = 40, 0.025


class Manager:
    """The running systemd, as far as limits are concerned."""

    def __init__(
        self,
        host: root.HostRoot,
        *,
        connect: Callable[[], bus.BusConnection] = bus.BusConnection,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._connect = connect
        self._clock = clock
        self.pause = pause
        # sd_booted(3): this directory is there exactly when systemd is the init.
        self._there = host.live and host.exists(host.at("/run/systemd/system"))
        self._wanted = True
        self._silent_until = 0.0
        #: It takes ``CPUWeight=idle`` (since 252), until it has refused that.
        self.idles = True
        #: Why properties cannot be used now.
        self.problem: absence.Unsupported | None = None

    @property
    def ready(self) -> bool:
        """Whether systemd is to be asked."""
        return self._there and self._wanted and self._clock() >= self._silent_until

    def use(self, *, wanted: bool) -> None:
        """Use systemd from now on, or write files directly, as ``cgroups.systemd`` says."""
        self._wanted = wanted

    def manages(self, layout: cgroup.Layout) -> bool:
        """Whether limits of units go through systemd: on cgroup v2, in its own tree."""
        tree = layout.tree
        return tree is not None and tree.base == "" and bool(tree.controllers) and self.ready

    def route(self, layout: cgroup.Layout, wanted: action.Action) -> action.Action:
        """Convert an action to systemd properties where systemd owns the cgroup."""
        unit = cgroup.unit_of(wanted.group)
        if not unit or not isinstance(wanted, action.WriteFile) or layout.tree is None:
            return wanted
        directory, _, file = wanted.target.rpartition("/")
        properties = properties_of(file, wanted.value)
        if not properties or directory != layout.tree.directory(wanted.group):
            return wanted
        return action.SetUnitProperty(
            target=wanted.target,
            value=wanted.value,
            unit=unit,
            properties=properties,
            policy=wanted.policy,
            reason=wanted.reason,
            knob=wanted.knob,
            group=wanted.group,
            protective=wanted.protective,
        )

    def look(self, wanted: action.SetUnitProperty) -> Properties:
        """The current properties in systemd."""
        with self._asking() as connection:
            properties = connection.properties(wanted.unit, [name for name, _ in wanted.properties])
        return tuple((name, _spell(value)) for name, value in properties.items())

    def set(self, wanted: action.SetUnitProperty) -> None:
        """Set them."""
        values = [(name, _value(text)) for name, text in wanted.properties]
        try:
            with self._asking() as connection:
                connection.set_properties(wanted.unit, values)
        except OSError as error:
            if (
                error.errno == errno.EINVAL
                and wanted.knob == knob.CPU_IDLE.name
                and not wanted.only_if
            ):
                self.idles = False
            raise

    @contextlib.contextmanager
    def _asking(self) -> Iterator[bus.BusConnection]:
        """One errand: what goes wrong with systemd itself becomes a value and an errno."""
        problem = None
        try:
            with self._connect() as connection:
                yield connection
        except bus.NoSystemdError as error:
            # Files are written directly for a while.
            self._silent_until = self._clock() + PAUSE
            problem = absence.Unsupported(
                FEATURE,
                f"{error}; koordlet writes unit limits directly, a daemon-reload undoes them",
            )
            raise OSError(errno.ETIMEDOUT, f"systemd does not answer: {error}") from error
        finally:
            self.problem = problem


def carry_out(
    host: root.HostRoot, manager: Manager | None, wanted: action.SetUnitProperty
) -> tuple[str, str]:
    """Set the properties and wait for the file; its text, and what is different."""
    if manager is None:
        raise OSError(errno.EOPNOTSUPP, "systemd is not available", wanted.target)
    if wanted.only_if:
        now = manager.look(wanted)
        if now == wanted.properties:
            return _text(host, wanted), ""
        if now not in wanted.only_if:
            return _text(
                host, wanted
            ), f"another program set {_words(now)} of {wanted.unit}: koordlet leaves it"
    manager.set(wanted)
    text = _text(host, wanted)
    if wanted.only_if:
        return text, ""
    for _ in range(_LOOKS):
        if kinds.same(wanted, wanted.value, text):
            return text, ""
        manager.pause(_LOOK_SECONDS)
        text = _text(host, wanted)
    return text, f"set {_words(wanted.properties)} of {wanted.unit}, the file reads {text!r}"


def undo(entry: journal.Entry) -> action.SetUnitProperty:
    """The action that restores an entry's properties."""
    file = entry.target.rpartition("/")[2]
    ours = tuple(properties_of(file, value) for value in entry.values)
    return action.SetUnitProperty(
        target=entry.target,
        value=entry.original or "",
        unit=entry.unit,
        properties=entry.properties,
        policy=entry.policy,
        reason="restore what was before koordlet",
        knob=entry.knob,
        group=entry.group,
        only_if=tuple(text for text in ours if text),
    )


def after_reset(
    entry: journal.Entry, wanted: action.SetUnitProperty, text: str
) -> journal.Entry | None:
    """The entry of a file that still holds koordlet's value after its properties were reset.

    systemd writes only what is set, so a set that was unset stays in the file while another unit
    keeps the controller there.
    """
    if not text or not kinds.is_ours(wanted, entry.values, text, cpuset.CPUSet()):
        return None
    if kinds.same(wanted, entry.original or "", text):
        return None
    return entry._replace(
        kind=action.WriteFile.__name__,
        original=entry.original or "",
        unit="",
        properties=(),
    )


def _text(host: root.HostRoot, wanted: action.SetUnitProperty) -> str:
    try:
        return host.text(host.at(wanted.target)).rstrip("\n")
    except OSError:
        return ""  # the controller is not handed down (any more), or the unit does not run


def _words(properties: Properties) -> str:
    return ", ".join(f"{name}={text.partition(':')[2] or 'unset'}" for name, text in properties)


def _spell(value: dbus.Variant) -> str:
    if isinstance(value.value, bytes):
        # systemd pads a set to whole machine words; trailing zeros mean nothing.
        return "ay:" + value.value.rstrip(b"\0").hex()
    return f"{value.signature}:{value.value}"


def _value(text: str) -> dbus.Variant:
    kind, _, value = text.partition(":")
    if kind == "ay":
        return dbus.Variant("ay", bytes.fromhex(value))
    return dbus.Variant(kind, int(value) if kind == "t" else value)


# Properties ---------------------------------------------------------------------------------------


#: What systemd says of a number without a limit, or of one that is not set.
INFINITY = (1 << 64) - 1
_SECOND = 1_000_000
_PERIOD = 100_000

Properties = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class PropertyRow:
    """One file of cgroup v2: its properties, and how a text becomes their values."""

    names: tuple[str, ...]
    convert: Callable[[str], tuple[str, ...]]


def _set(text: str) -> tuple[str, ...]:
    cpus = cpuset.CPUSet.parse(text)
    bits = sum(1 << cpu for cpu in cpus)
    return ("ay:" + bits.to_bytes((bits.bit_length() + 7) // 8, "little").hex(),)


def _number(text: str) -> tuple[str, ...]:
    return (f"t:{INFINITY if text == 'max' else int(text)}",)


def _weight(text: str) -> tuple[str, ...]:
    return (f"t:{int(text.removeprefix('default '))}",)


def _idle(text: str) -> tuple[str, ...]:
    """``CPUWeight=idle`` is the number 0; no other property says that a group does not idle."""
    if text != "1":
        raise ValueError(text)
    return ("t:0",)


def _quota(text: str) -> tuple[str, ...]:
    quota, _, period = text.partition(" ")
    length = int(period or _PERIOD)
    per_second = INFINITY if quota == "max" else int(quota) * _SECOND // length
    return (f"t:{per_second}", f"t:{length}")


PROPERTIES: Mapping[str, PropertyRow] = {
    "cpuset.cpus": PropertyRow(("AllowedCPUs",), _set),
    "cpuset.mems": PropertyRow(("AllowedMemoryNodes",), _set),
    "cpu.weight": PropertyRow(("CPUWeight",), _weight),
    "cpu.idle": PropertyRow(("CPUWeight",), _idle),
    "cpu.max": PropertyRow(("CPUQuotaPerSecUSec", "CPUQuotaPeriodUSec"), _quota),
    "io.weight": PropertyRow(("IOWeight",), _weight),
    "memory.min": PropertyRow(("MemoryMin",), _number),
    "memory.low": PropertyRow(("MemoryLow",), _number),
    "memory.high": PropertyRow(("MemoryHigh",), _number),
    "memory.max": PropertyRow(("MemoryMax",), _number),
    "memory.swap.max": PropertyRow(("MemorySwapMax",), _number),
    "pids.max": PropertyRow(("TasksMax",), _number),
}


def properties_of(file: str, text: str) -> Properties:
    """The properties that make a file say ``text``; none where there are no such."""
    row = PROPERTIES.get(file)
    if row is None or not text.strip():
        return ()
    try:
        return tuple(zip(row.names, row.convert(text.strip()), strict=True))
    except (ValueError, OverflowError):
        return ()


def without(wanted: action.SetUnitProperty, original: str) -> Properties:
    """The properties of a unit that was made with these, had it been made with the original."""
    file = wanted.target.rpartition("/")[2]
    return properties_of(file, original) or tuple((name, "ay:") for name, _ in wanted.properties)
