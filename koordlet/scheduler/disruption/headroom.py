"""Room that is to be kept ahead: how many nodes could take a pod of a size.

Covers: the entries of ``headroom``, how a size is spelled in one word. Does not cover: which nodes
have room (``rescheduling.room_ahead``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from koordlet.kubeapi import shapes
from koordlet.model import resources
from koordlet.model.record import dataclass

#: Entries, and nodes of one: each node is counted, and keeps its room, by itself.
MOST_ENTRIES, MOST_NODES = 8, 1000
_NODES = "nodes"


@dataclass(frozen=True, slots=True)
class Headroom:
    """So many nodes are to have room for a pod that asks for this."""

    amounts: Mapping[str, int]
    nodes: int


def read(value: object) -> tuple[Headroom, ...]:
    """The entries of a configuration; ``ValueError`` says what is wrong with one."""
    if not isinstance(value, list):
        raise ValueError(f"expected a list, found {shapes.shown(value)}")
    if len(value) > MOST_ENTRIES:
        raise ValueError(f"at most {MOST_ENTRIES} entries, found {len(value)}")
    several = tuple(_entry(shapes.mapping(each)) for each in value)
    sizes = [spelled(each.amounts) for each in several]
    if twice := sorted({size for size in sizes if sizes.count(size) > 1}):
        raise ValueError(f"{twice[0]} is there twice; keep the entry with more {_NODES}")
    return several


def _entry(body: Mapping[str, Any]) -> Headroom:
    try:
        nodes = shapes.integer(1, MOST_NODES)(body.get(_NODES, 1), [])
    except ValueError as error:
        raise ValueError(f"{_NODES}: {error}") from error
    return Headroom(size({key: each for key, each in body.items() if key != _NODES}), nodes)


def size(body: Mapping[str, Any]) -> dict[str, int]:
    """What a pod asks for; ``ValueError`` for what no pod could ask for, or for nothing."""
    problems: list[str] = []
    amounts = resources.read(body, problems, "size")
    if problems:
        raise ValueError(problems[0])
    if unknown := sorted(name for name in amounts if not _is_resource(name)):
        raise ValueError(f"{unknown[0]!r} is no resource; {', '.join(_OWN)}, or one with a domain")
    if not any(amounts.values()):
        raise ValueError("a size needs an amount above 0, as in cpu: 8")
    return {name: amount for name, amount in amounts.items() if amount}


def spelled(amounts: Mapping[str, int]) -> str:
    """A size in one word: ``cpu=8,memory=32Gi``."""
    texts = sorted(resources.canonical(amounts).items())
    return ",".join(f"{name}={text}" for name, text in texts)


_OWN = ("cpu", "memory", "ephemeral-storage")


def _is_resource(name: str) -> bool:
    return name in _OWN or "/" in name or name.startswith("hugepages-")
