"""HTB tree of a network link: classes with rates, and their addresses.

Covers: the tree of classes as one text, which is what is compared, journaled and shown; whose
queueing a text is. Does not cover: reading and making it (``host.devices.queueing``,
``apply.network``), which classes there shall be (``policy.memory_io.network_qos``).

Rules:
1. A link has two sides: ``egress``, its root queueing discipline, and ``ingress``, a detour of what
   arrives through a device of ours whose root is the tree.
2. Ours is known by its handle, ``4b4c:`` ("KL"), or by the name of the device of the detour.
3. Free is what the kernel made by itself: handle 0, or no ingress at all. Everything else belongs
   to somebody, and is never replaced.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import field

from koordlet.model.record import dataclass

#: Major number of the classes of ours.
HANDLE = 0x4B4C
#: The side of a link whose queueing the kernel did not make, and nobody else.
NONE = "none"
#: Something of ours is there, and not all of it: an agent was killed while it made it.
UNFINISHED = "unfinished"
EGRESS, INGRESS = "egress", "ingress"
#: The network namespace that links are in; its inode is its identity.
NETWORK = "/proc/self/ns/net"

_TARGET = re.compile(r"/net/([^/]+)/(egress|ingress)")
_FREE = re.compile(r"[a-z0-9_]+ 0:")
_HEAD = "htb 4b4c: default "


@dataclass(frozen=True, slots=True)
class Class:
    """One HTB class: guaranteed and maximum rate, in bits per second."""

    parent: int
    rate: int
    ceil: int
    #: Who is asked first when there is something to borrow: 0 before 7.
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Tree:
    """Classes by minor number, and whose packets are in which; others are in ``default``."""

    default: int
    classes: Mapping[int, Class] = field(default_factory=dict)
    addresses: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A network link and its queueing."""

    name: str
    index: int
    egress: str = NONE
    ingress: str = NONE

    def side(self, direction: str) -> str:
        """The text of one side."""
        return self.egress if direction == EGRESS else self.ingress


@dataclass(frozen=True, slots=True)
class Links:
    """The links that were read, and problems with the rest."""

    links: tuple[Link, ...] = ()
    problems: tuple[str, ...] = ()


def target(link: str, direction: str) -> str:
    """The target of an action for one side of a link."""
    return f"/net/{link}/{direction}"


def of_target(text: str) -> tuple[str, str] | None:
    """Link and direction; ``None`` where it is another target."""
    match = _TARGET.fullmatch(text)
    return (match[1], match[2]) if match else None


def detour(index: int) -> str:
    """The name of the ifb device for a link's ingress."""
    return f"kl-ifb{index}"


def is_ours(text: str) -> bool:
    """Whether koordlet made a queueing."""
    return text.startswith(_HEAD) or text == UNFINISHED


def is_free(text: str) -> bool:
    """Whether a queueing is the kernel's default."""
    return text == NONE or _FREE.fullmatch(text) is not None


def text(tree: Tree) -> str:
    """One line for each class, then one for the addresses of each."""
    lines = [f"{_HEAD}{tree.default}"]
    for minor, tc_class in sorted(tree.classes.items()):
        rates = f"rate {tc_class.rate} ceil {tc_class.ceil} prio {tc_class.priority}"
        lines.append(f"class {minor} of {tc_class.parent}: {rates}")
    inside: dict[int, list[str]] = {}
    for address, minor in tree.addresses.items():
        inside.setdefault(minor, []).append(address)
    for minor, addresses in sorted(inside.items()):
        lines.append(f"in {minor}: {' '.join(sorted(addresses, key=_place))}")
    return "\n".join(lines)


def _place(address: str) -> tuple[int, int]:
    known = ipaddress.ip_address(address)
    return known.version, int(known)


_CLASS = re.compile(r"class (\d+) of (\d+): rate (\d+) ceil (\d+) prio (\d+)")
_IN = re.compile(r"in (\d+): (.+)")


def parse(spelled: str) -> Tree:
    """The tree of a text of ours; ``ValueError`` where it is none."""
    head, *lines = spelled.split("\n")
    if not head.startswith(_HEAD):
        raise ValueError(f"not a tree of classes: {head[:80]!r}")
    classes: dict[int, Class] = {}
    addresses: dict[str, int] = {}
    for line in lines:
        if match := _CLASS.fullmatch(line):
            minor, *numbers = map(int, match.groups())
            classes[minor] = Class(*numbers)
        elif match := _IN.fullmatch(line):
            addresses.update(dict.fromkeys(match[2].split(" "), int(match[1])))
        else:
            raise ValueError(f"not a class and no addresses: {line[:80]!r}")
    return Tree(int(head.removeprefix(_HEAD)), classes, addresses)
