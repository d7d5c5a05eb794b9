"""Keeps the last valid strategies of cluster and node while new ones are unreadable. Pure.

Covers: putting them in place of those that make no sense, their form in a checkpoint.
Does not cover: finding what makes no sense (``shapes``), strategies that evict, which do not run
then (``policy.eviction.strategy``).

Rules:
1. A value that cannot be read is as it was when it could be; where it never could, its default
   counts. A list holds as a whole, but for the applications of the host: each of them is one.
2. What limits best-effort work is not switched off by a mistake: where nobody can read whether it
   is on, and nobody ever could, it is.
3. A checkpoint has the sections that hold and nothing else of an object, as one text with its sum:
   a number with one other digit is still a number, and would be in force.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import field, replace

from koordlet.kubeapi import shapes
from koordlet.model import snapshot
from koordlet.model.record import dataclass
from koordlet.workloads import colocation

THRESHOLD = "resourceUsedThresholdWithBE"
CLASSES = "resourceQOSStrategy"
_ENABLE = "enable"
SECTIONS = (THRESHOLD, CLASSES, "cpuBurstStrategy", "systemStrategy", colocation.KEY)
#: What a Node says for itself.
_OF_NODE = (colocation.ANNOTATION, *colocation.LABELS)
_OF_CLASS = ("cpuQOS", "memoryQOS", "blkioQOS", "resctrlQOS", "networkQOS")
#: Sections that limit best-effort work (rule 2).
_LIMITS = ((THRESHOLD,), *((CLASSES, "beClass", part) for part in _OF_CLASS))

_Path = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldStrategies:
    """The words in force."""

    #: Of the NodeSLO or the ConfigMap; ``None``: neither said anything, or it was taken back.
    cluster: Mapping[str, object] | None = None
    #: Of the Node's own annotation and labels, by key.
    node: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptStrategies:
    """Strategies of a checkpoint; empty for none."""

    words: str = ""
    crc32: int = 0
    node: str = ""
    node_crc32: int = 0


def kept(held: HeldStrategies) -> KeptStrategies:
    """Words for a checkpoint; ``ValueError`` where they are too long or too deep for one."""
    cluster = "" if held.cluster is None else _text(held.cluster, SECTIONS)
    node = _text(held.node, _OF_NODE) if held.node else ""
    return KeptStrategies(
        words=cluster,
        crc32=zlib.crc32(cluster.encode()),
        node=node,
        node_crc32=zlib.crc32(node.encode()),
    )


def _text(words: Mapping[str, object], keys: Collection[str]) -> str:
    sections = {key: section for key in keys if (section := shapes.find(words, key)) is not None}
    try:
        text = json.dumps(sections, sort_keys=True)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if len(text) > shapes.MAX_TEXT:
        raise ValueError(f"longer than {shapes.MAX_TEXT >> 10} KiB")
    return text


def revive(body: Mapping[str, object]) -> HeldStrategies:
    """The words of a checkpoint; ``ValueError`` where they are not what was written."""
    cluster = _words(body.get("words"), body.get("crc32"))
    # Earlier agents kept nothing of the Node.
    node = _words(body.get("node", ""), body.get("node_crc32", 0))
    return HeldStrategies(cluster=cluster, node=node or {})


def _words(text: object, crc32: object) -> Mapping[str, object] | None:
    if not isinstance(text, str) or zlib.crc32(text.encode()) != crc32:
        raise ValueError("its checksum does not match")
    return shapes.mapping(shapes.parse(text)) if text else None


def of_node(
    node: snapshot.NodeInfo, before: Mapping[str, object]
) -> tuple[snapshot.NodeInfo, Mapping[str, object]]:
    """The node with its own strategy in force, and the words of that."""
    problems = shapes.Problems()
    words = colocation.words_of_node(node.labels, node.annotations, problems)
    colocation.of_words(words, problems)
    if not problems.unread:
        return node, words
    held = mended(words, problems.unread, before)
    return replace(node, colocation=colocation.of_words(held, shapes.Problems())), held


def mended(
    body: Mapping[str, object], unread: Iterable[_Path], before: Mapping[str, object] | None
) -> Mapping[str, object]:
    """The words in force, where these paths of a body could not be read; ``None``: the first."""
    mended_body = body
    places = {_of_keys(path) for path in unread if path[0] in (*SECTIONS, *_OF_NODE)}
    for path in sorted(places):
        old = _at(before, path)
        if old is not None:
            mended_body = _with(mended_body, path, old)
    for limit in _LIMITS if before is None else ():
        switch = (*limit, _ENABLE)
        if any(switch[: len(path)] == path for path in places):
            mended_body = _with(mended_body, switch, value=True)
    return mended_body


def _of_keys(path: _Path) -> _Path:
    """Up to the first list."""
    end = next((at for at, key in enumerate(path) if key.startswith("[")), len(path))
    return path[:end]


def _at(body: object, path: _Path) -> object:
    for key in path:
        body = shapes.find(body, key) if isinstance(body, dict) else None
    return body


def _with(body: object, path: _Path, value: object) -> Mapping[str, object]:
    """The body with another value at a path; what is no object on the way becomes one."""
    key, *rest = path
    there = body if isinstance(body, dict) else {}
    kept = {
        name: member for name, member in there.items() if str(name).casefold() != key.casefold()
    }
    inner = shapes.find(there, key)
    return {**kept, key: _with(inner, tuple(rest), value) if rest else value}
