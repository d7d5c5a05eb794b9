"""The text of a resctrl ``schemata`` file: parse, check as the kernel does, format, compare. Pure.

Covers: lines such as ``L3:0=3f;1=fff`` and ``MB:0= 50;1=100``, the kernel's rules for each value,
what differs between two texts. Does not cover: what to ask for (``policy.resctrl.resctrl``), files.

Rules:
1. What is checked here is what the kernel checks, with its own words (``info/last_cmd_status``), so
   that nothing is written which it would refuse: several lines in one write are all or nothing.
2. A resource that we do not know keeps its text: it is never written and never lost.

Kernel facts: Documentation/arch/x86/resctrl.rst; fs/resctrl ``ctrlmondata.c``; the answers of 6.1
are recorded in ``fixtures/kernel/resctrl-*.jsonl``. Lines come padded (names to the widest name,
numbers to the widest number), MB before L3, and the final newline of a write is required.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field

from koordlet.model import resctrl
from koordlet.model.record import dataclass

#: Resource name to domain to value.
Values = Mapping[str, Mapping[int, int]]


@dataclass(frozen=True, slots=True)
class Schemata:
    """The contents of one file."""

    values: Values = field(default_factory=dict)
    #: Lines that make no sense to us, as they came.
    unknown: tuple[str, ...] = ()

    def get(self, resource: str, domain: int) -> int | None:
        """The value of a domain; ``None`` where the line or the domain is not there."""
        return self.values.get(resource, {}).get(domain)

    def items(self) -> Iterator[tuple[str, int, int]]:
        """Every (resource, domain, value)."""
        for resource, domains in self.values.items():
            for domain, value in domains.items():
                yield resource, domain, value


def is_mask(resource: str) -> bool:
    """True where values are bit masks in hexadecimal; bandwidth (MB, SMBA) is in decimal."""
    return resource.startswith("L") and resource[1:2].isdigit()


def parse(text: str) -> Schemata:
    """Read a file. Damage costs the line that it is in."""
    values: dict[str, dict[int, int]] = {}
    unknown = []
    for line in text.splitlines():
        if not line.strip():
            continue
        name, colon, rest = line.strip().partition(":")
        domains = _domains(name, rest) if colon and name else None
        if domains is None:
            unknown.append(line)
        else:
            values.setdefault(name, {}).update(domains)
    return Schemata(values, tuple(unknown))


def _domains(resource: str, text: str) -> dict[int, int] | None:
    masks: dict[int, int] = {}
    base = 16 if is_mask(resource) else 10
    for part in text.strip().rstrip(";").split(";"):
        domain, equals, value = part.partition("=")
        try:
            # Python would take "1_0" and "+5"; the kernel never prints such a thing.
            if not equals or "_" in part:
                return None
            masks[int(domain)] = int(value, base)
        except ValueError:
            return None
    return masks


def line(resource: str, domains: Mapping[int, int]) -> str:
    """One line, without a newline."""
    return f"{resource}:" + ";".join(f"{d}={shown(resource, v)}" for d, v in domains.items())


def text(values: Values) -> str:
    """All lines; resources and domains in their order."""
    return "\n".join(line(name, domains) for name, domains in values.items() if domains)


def shown(resource: str, value: int) -> str:
    """A value as a write says it."""
    return f"{value:x}" if is_mask(resource) else str(value)


def difference(wanted: Values, current: Schemata) -> list[tuple[str, int, int]]:
    """Differences to write, domain by domain, to bring a file to the wanted values."""
    return [
        (resource, domain, value)
        for resource, domains in wanted.items()
        for domain, value in domains.items()
        if current.get(resource, domain) != value
    ]


def restrict(current: Schemata, to: Values) -> Values:
    """The part of a file that speaks of the same resources and domains."""
    return {
        resource: {d: v for d in domains if (v := current.get(resource, d)) is not None}
        for resource, domains in to.items()
    }


def same(wanted: str, current: str) -> bool:
    """Whether a file holds all that a text asks for. The file may say more."""
    asked = parse(wanted)
    return not asked.unknown and not difference(asked.values, parse(current))


def problem(hardware: resctrl.Hardware, resource: str, domain: int, value: int) -> str:
    """Why the kernel would refuse a value, in its own words; empty when it would take it."""
    offered = hardware.cache(resource) or hardware.bandwidth(resource)
    if offered is None:
        return f"Unknown or unsupported resource name '{resource}'"
    if domain not in offered.domains:
        return f"no domain {domain}"
    if isinstance(offered, resctrl.Cache):
        return mask_problem(offered, value)
    return bandwidth_problem(offered, value)


def mask_problem(cache: resctrl.Cache, mask: int) -> str:
    """The rules of a capacity mask (``cbm_validate``)."""
    if mask > cache.mask or (mask == 0 and cache.min_bits > 0):
        return "Mask out of range"
    if not cache.sparse and not contiguous(mask):
        return f"The mask {mask:x} has non-consecutive 1-bits"
    if mask.bit_count() < cache.min_bits:
        return f"Need at least {cache.min_bits} bits in the mask"
    return ""


def contiguous(mask: int) -> bool:
    """True for a mask without holes; the empty one has none."""
    low = mask & -mask
    return mask & (mask + low) == 0


def bandwidth_problem(resource: resctrl.Bandwidth, value: int) -> str:
    """The rules of a bandwidth (``bw_validate``): the upper bound is the unlimited value."""
    if resource.unit is resctrl.Unit.MBPS:
        return (
            "" if 0 <= value <= resctrl.MBPS_UNLIMITED else f"Invalid {resource.name} value {value}"
        )
    most = resource.default
    if resource.unit is resctrl.Unit.EIGHTHS:
        most = max([most, *resource.unlimited.values()])
    if not resource.minimum <= value <= most:
        return f"{resource.name} value {value} out of range [{resource.minimum},{most}]"
    return ""


def problems(hardware: resctrl.Hardware, wanted: Values) -> Iterable[tuple[str, int, str]]:
    """Every (resource, domain, why) that the kernel would refuse."""
    for resource, domains in wanted.items():
        for domain, value in domains.items():
            why = problem(hardware, resource, domain, value)
            if why:
                yield resource, domain, why
