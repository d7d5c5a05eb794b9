"""The resources of a stand-in resctrl: what each value may be, how a file shows and takes it.

Covers: masks and bandwidths with the kernel's checks, in its order and with its words; the text of
``schemata`` and ``size``. Does not cover: groups, tasks, mounting (``resctrl``).

Written from the kernel's behaviour and apart from ``koordlet.model.schemata`` on purpose: what
checks the product's writes must not be the product.

Kernel facts: ``arch/x86/kernel/cpu/resctrl/ctrlmondata.c`` (6.1), recorded in
``fixtures/kernel/resctrl-*.jsonl``.
"""

from __future__ import annotations

import dataclasses
import errno
import re
from collections.abc import Mapping

from koordlet.model.cpuset import CPUSet
from tests.kit.kernel.tree import refused

_CACHE_BYTES = {2: 4 << 20, 3: 16 << 20}
_ULONG = 1 << 64
MBPS_UNLIMITED = (1 << 32) - 1


class Status:
    """``info/last_cmd_status``."""

    def __init__(self) -> None:
        self.text = ""

    def __str__(self) -> str:
        return self.text or "ok\n"

    def clear(self) -> None:
        """``rdt_last_cmd_clear``."""
        self.text = ""

    def fail(self, why: str, number: int = errno.EINVAL) -> OSError:
        """Says why (texts pile up until cleared), and makes the error."""
        self.text += f"{why}\n" if why else ""
        return refused(number)


@dataclasses.dataclass(eq=False)
class Resource:
    """One resource as a schemata line names it."""

    name: str
    num_closids: int
    #: Domain to its CPUs.
    domains: Mapping[int, CPUSet]
    #: The unlimited value: all ways, or the most bandwidth.
    full: int
    shareable: int = 0
    min_bits: int = 1
    sparse: bool = False
    minimum: int = 0
    gran: int = 1
    #: Width of a printed value.
    width: int = 3
    #: Mounted with ``mba_MBps``: numbers are MiB/s, unlimited is the largest of 32 bits.
    mbps: bool = False
    #: Per group (its key) and domain.
    values: dict[str, dict[int, int]] = dataclasses.field(default_factory=dict)

    @property
    def cache(self) -> bool:
        """A mask of ways, not a bandwidth."""
        return self.name.startswith("L")

    @property
    def fresh(self) -> int:
        """What nothing was asked for reads as."""
        return MBPS_UNLIMITED if self.mbps else self.full

    def up(self, online: CPUSet) -> list[int]:
        """The domains that have an online CPU."""
        return [domain for domain, cpus in self.domains.items() if cpus & online]

    def number(self, text: str, status: Status) -> int:
        """A value as a write says it, checked."""
        return self._mask(text, status) if self.cache else self._bandwidth(text, status)

    def _mask(self, text: str, status: Status) -> int:
        value = kstrtoul(text, 16)
        if value is None:
            raise status.fail(f"Non-hex character in the mask {text}")
        if (self.min_bits > 0 and value == 0) or value > self.full:
            raise status.fail("Mask out of range")
        bits = f"{value:b}".strip("0")
        if not self.sparse and "0" in bits:
            raise status.fail(f"The mask {value:x} has non-consecutive 1-bits")
        if len(bits) < self.min_bits:
            raise status.fail(f"Need at least {self.min_bits} bits in the mask")
        return value

    def _bandwidth(self, text: str, status: Status) -> int:
        value = kstrtoul(text, 10)
        if value is None:
            raise status.fail(f"Invalid MB value {text}")
        if self.mbps:
            return value
        if not self.minimum <= value <= self.full:
            raise status.fail(f"MB value {value} out of range [{self.minimum},{self.full}]")
        return -(-value // self.gran) * self.gran

    def show(self, group: str, online: CPUSet) -> str:
        """The domains' values."""
        form = "{}={:0{}x}" if self.cache else "{}={:{}d}"
        values = self.values[group]
        return ";".join(form.format(d, values[d], self.width) for d in self.up(online))

    def size(self, group: str, online: CPUSet) -> str:
        """As ``show``, in bytes for caches."""
        unit = _CACHE_BYTES[int(self.name[1])] // self.full.bit_length() if self.cache else 0
        values = self.values[group]
        return ";".join(
            f"{d}={values[d].bit_count() * unit if self.cache else values[d]}"
            for d in self.up(online)
        )


def kstrtoul(text: str, base: int) -> int | None:
    """``kstrtoul``; ``None`` where the kernel answers an error."""
    digits = "[0-9a-fA-F]" if base == 16 else "[0-9]"
    prefix = "(?:0[xX])?" if base == 16 else ""
    match = re.fullmatch(rf"\+?{prefix}({digits}+)\n?", text)
    value = int(match[1], base) if match else _ULONG
    return value if value < _ULONG else None


def staged(
    resources: list[Resource], text: str, online: CPUSet, status: Status
) -> dict[Resource, dict[int, int]]:
    """What a write to ``schemata`` asks for; nothing is applied when any part is refused."""
    wanted: dict[Resource, dict[int, int]] = {}
    # The final newline is already cut, so an empty rest is one line more.
    for line in text.split("\n"):
        name, colon, rest = line.partition(":")
        name = name.strip()
        if not colon:
            raise status.fail("Missing ':'")
        if not rest:
            raise status.fail(f"Missing '{name}' value")
        resource = next((candidate for candidate in resources if candidate.name == name), None)
        if resource is None:
            raise status.fail(f"Unknown or unsupported resource name '{name}'")
        _stage(resource, rest, online, status, wanted.setdefault(resource, {}))
    return wanted


def _stage(
    resource: Resource, text: str, online: CPUSet, status: Status, into: dict[int, int]
) -> None:
    while text:
        part, _, text = text.partition(";")
        name, equals, value = part.partition("=")
        domain = kstrtoul(name, 10)
        if not equals or domain is None:
            raise status.fail("Missing '=' or non-numeric domain")
        if domain not in resource.up(online):
            raise status.fail("")
        if domain in into:
            raise status.fail(f"Duplicate domain {domain}")
        into[domain] = resource.number(value.strip(), status)
