"""Server-side apply: field managers, the fields that they own, conflicts.

Covers: a simplified model of the API machinery's field management, kept in
``metadata.managedFields`` in the published notation. Does not cover: writing (``writing``).

The model:
1. A field is a scalar, an empty value, or a list without keys; it is named by the path to it. In
   lists with keys an element is named by its keys.
2. Each write belongs to (manager, operation, subresource). ``Apply`` owns what it names, also what
   has its value already; ``Update`` (every other write) owns what it changed.
3. Apply conflicts where another owner has a field and another value stands in it. Equal values are
   shared. Forced, it takes the field from the others.
4. What a manager applied before and does not name any more is removed, unless others own it. The
   keys of an element stay as long as somebody owns a field of it.
Simplified: no defaulting, no conversion between versions, and an element of a keyed list is owned
through its fields, its keys among them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from koordlet.kubeapi import refusals
from koordlet.model.record import dataclass
from koordlet.scheduler.store import merging

#: One step: the name of a field, or the keys and values of an element.
Step = str | tuple[tuple[str, Any], ...]
Path = tuple[Step, ...]

_NOBODYS = {"apiVersion", "kind"}
_NOBODYS_METADATA = {
    *("name", "namespace", "uid", "resourceVersion", "creationTimestamp", "generation"),
    *("managedFields", "generateName", "deletionTimestamp", "deletionGracePeriodSeconds"),
    "selfLink",
}


@dataclass(frozen=True, slots=True)
class FieldManager:
    """A field manager: its name, the operation and the subresource."""

    manager: str
    operation: str
    subresource: str = ""


Owned = dict[FieldManager, frozenset[Path]]


def fields(body: Mapping[str, Any], keys: merging.Keys) -> dict[Path, Any]:
    """Every field that can have an owner, with its value."""
    by_path: dict[Path, Any] = {}
    for name, value in body.items():
        if name in _NOBODYS:
            continue
        if name == "metadata" and isinstance(value, Mapping):
            known = {key: field for key, field in value.items() if key not in _NOBODYS_METADATA}
            by_path.update(_below(("metadata",), known, keys) if known else ())
        else:
            by_path.update(_below((name,), value, keys))
    return by_path


def _below(path: Path, value: Any, keys: merging.Keys) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, Mapping) and value:
        for name, inner in value.items():
            yield from _below((*path, name), inner, keys)
    elif isinstance(value, list) and value and path[-1] in keys:
        names = keys[str(path[-1])]
        for element in value:
            step = tuple(zip(names, merging.identity(element, names), strict=True))
            yield from _below((*path, step), element, keys)
    else:
        yield path, value


def apply(
    target: Mapping[str, Any],
    body: Mapping[str, Any],
    owned: Owned,
    owner: FieldManager,
    keys: merging.Keys,
    *,
    force: bool,
) -> tuple[dict[str, Any], Owned]:
    """The object and its owners after an apply; ``Conflict`` names every field in the way."""
    wanted, present = fields(body, keys), fields(target, keys)
    changed = {path for path, value in wanted.items() if present.get(path) != value}
    others = {other: paths for other, paths in owned.items() if other != owner}
    rivals = {other: paths & changed for other, paths in others.items() if paths & changed}
    if rivals and not force:
        raise _conflict(rivals)
    dropped = owned.get(owner, frozenset()) - wanted.keys()
    kept = frozenset().union(*others.values())
    result: Any = dict(target)
    # Keys of elements last, from the innermost on: without them the rest would not be found.
    gone = dropped - kept - set(_keys_of(kept))
    for path in sorted(gone, key=lambda path: (_is_key(path), -len(path))):
        result = _without(result, path)
    result = merging.strategic(result, body, keys)
    others = {other: paths - changed for other, paths in others.items() if paths - changed}
    return result, {**others, owner: frozenset(wanted)}


def _is_key(path: Path) -> bool:
    """Whether a field is one that its element is named by."""
    return len(path) > 1 and not isinstance(path[-2], str) and path[-1] in dict(path[-2])


def _keys_of(paths: Iterable[Path]) -> Iterator[Path]:
    """The keys of all elements in which these fields are."""
    for path in paths:
        for depth, step in enumerate(path, 1):
            if not isinstance(step, str):
                yield from ((*path[:depth], name) for name, _ in step)


def update(
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    owned: Owned,
    owner: FieldManager,
    keys: merging.Keys,
) -> Owned:
    """The owners after an update: it owns what it changed; removed fields have no owner."""
    old, new = fields(before, keys), fields(after, keys)
    changed = frozenset(path for path, value in new.items() if old.get(path) != value)
    result = {other: (paths - changed) & new.keys() for other, paths in owned.items()}
    result[owner] = (owned.get(owner, frozenset()) | changed) & new.keys()
    return {value: frozenset(paths) for value, paths in result.items() if paths}


def _conflict(rivals: Mapping[FieldManager, frozenset[Path]]) -> refusals.Conflict:
    causes = tuple(
        refusals.Cause("FieldManagerConflict", f'conflict with "{other.manager}"', _spelled(path))
        for other, paths in rivals.items()
        for path in sorted(paths, key=_spelled)
    )
    words = [f"{cause.message}: {cause.field}" for cause in causes]
    return refusals.Conflict(
        f"Apply failed with {len(words)} conflict{'s' * (len(words) > 1)}: {'; '.join(words)}",
        fix="leave the field to its owner, or force",
        reason="Conflict",
        causes=causes,
    )


def _spelled(path: Path) -> str:
    """``.spec.containers[name="web"].image``."""
    return "".join(
        f".{step}"
        if isinstance(step, str)
        else f"[{','.join(f'{k}={json.dumps(v)}' for k, v in step)}]"
        for step in path
    )


def _without(value: Any, path: Path) -> Any:
    """A value without one field, and without what becomes empty by that."""
    step, rest = path[0], path[1:]
    if isinstance(step, str):
        if not isinstance(value, Mapping) or step not in value:
            return value
        inner = _without(value[step], rest) if rest else None
        keep = {name: inner for name, inner in value.items() if name != step}
        return keep if inner in (None, {}, []) else {**value, step: inner}
    if not isinstance(value, list):
        return value
    result = []
    for element in value:
        mine = all(isinstance(element, Mapping) and element.get(key) == it for key, it in step)
        left = _without(element, rest) if mine and rest else None if mine else element
        if left not in (None, {}, []):
            result.append(left)
    return result


def read(managed: Any) -> Owned:
    """Read ``managedFields``; what cannot be read has no owner."""
    owned: Owned = {}
    for entry in managed if isinstance(managed, list) else ():
        if not isinstance(entry, Mapping) or not isinstance(entry.get("fieldsV1"), Mapping):
            continue
        owner = FieldManager(*map(str, _owner_key(entry)))
        owned[owner] = frozenset(_unpacked(entry["fieldsV1"], ()))
    return owned


def write(
    owned: Owned, old: Any, api_version: str, now: str, writer: FieldManager | None = None
) -> list[dict[str, Any]]:
    """Write ``managedFields``.

    An entry keeps its time while its fields stay the same, but for that of the ``writer``, who has
    just given one of them another value.
    """
    before = {_owner_key(entry): entry for entry in old or () if isinstance(entry, Mapping)}
    result = []
    for owner, paths in sorted(owned.items(), key=lambda entry: str(entry[0])):
        entry: dict[str, Any] = {
            "manager": owner.manager,
            "operation": owner.operation,
            "apiVersion": api_version,
            "time": now,
            "fieldsType": "FieldsV1",
            "fieldsV1": _packed(paths),
        }
        if owner.subresource:
            entry["subresource"] = owner.subresource
        known = before.get(_owner_key(entry))
        if known is not None and known.get("fieldsV1") == entry["fieldsV1"] and owner != writer:
            entry = dict(known)
        result.append(entry)
    return result


def _owner_key(entry: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(entry.get(key, "") for key in ("manager", "operation", "subresource"))


def _packed(paths: frozenset[Path]) -> dict[str, Any]:
    root: dict[str, Any] = {}
    for path in sorted(paths, key=_spelled):
        place = root
        for step in path:
            name = f"f:{step}" if isinstance(step, str) else f"k:{json.dumps(dict(step))}"
            place = place.setdefault(name, {})
    return root


def _unpacked(packed: Mapping[str, Any], path: Path) -> Iterator[Path]:
    if not packed and path:
        yield path
    for name, inner in packed.items():
        if name.startswith("f:"):
            step: Step = name[2:]
        elif name.startswith("k:"):
            step = tuple(json.loads(name[2:]).items())
        else:
            continue
        yield from _unpacked(inner if isinstance(inner, Mapping) else {}, (*path, step))
