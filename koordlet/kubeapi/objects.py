"""The port to a store of API objects: list, watch, get, create, patch, delete, bind, evict.

Covers: what both adapters promise (``kube``: an API server; ``scheduler.store``: a local file).
Does not cover: keeping a kind of objects up to date here (``informer``), the errors (``refusals``).

Rules, each with a test in ``tests/conformance`` that every adapter passes:
1. An object is a plain mapping as decoded from JSON. What we do not know in it is kept: nothing is
   ever written back whole, only patched.
2. A revision is opaque: compared for equality, handed back; ``older`` compares two of one kind.
3. A list is one state of the store. A watch from its revision tells every change since, once, in
   order; a change that ends the match of a selector is told as ``DELETED``.
4. A watch that ends without an error is no news: go on from the last revision. ``Gone`` means that
   what lies between is lost: list again.
5. A patch that changes nothing writes nothing: no new revision, nobody is told.
6. A patch with a revision is compare and swap: ``Conflict`` where the object has another one.
7. Where a kind has a status, a patch of the object leaves it alone, and a patch of the subresource
   ``status`` leaves the rest alone.
8. Deleting a running pod is a wish (``deletionTimestamp``) until its node has stopped it.
"""

from __future__ import annotations

import enum
from collections.abc import AsyncGenerator, Iterator, Mapping
from typing import Any, Protocol

from koordlet.kubeapi import kinds, selectors
from koordlet.model.record import dataclass

Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Ref:
    """One object, by name; ``namespace`` is empty for kinds without one."""

    kind: kinds.Kind
    name: str
    namespace: str = ""

    def __str__(self) -> str:
        where = f"{self.namespace}/" if self.namespace else ""
        return f"{self.kind} {where}{self.name}"


class Verb(enum.Enum):
    """The type of a watch event."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    #: Nothing happened up to this revision; the object is empty.
    BOOKMARK = "BOOKMARK"


@dataclass(frozen=True, slots=True)
class Change:
    """One watch event; a deleted object comes in its last state."""

    verb: Verb
    object: Object
    #: Where a watch goes on after this.
    revision: str


@dataclass(frozen=True, slots=True)
class Page:
    """A list, or a part of one; all pages of one list have the same revision."""

    items: tuple[Object, ...]
    revision: str


@dataclass(frozen=True, slots=True)
class Merge:
    """A JSON merge patch (RFC 7386): lists are replaced, null removes."""

    body: Object
    #: Compare and swap; empty: whatever is there.
    revision: str = ""


@dataclass(frozen=True, slots=True)
class Strategic:
    """A merge patch that knows the keys of lists such as conditions; built-in kinds only."""

    body: Object
    revision: str = ""


@dataclass(frozen=True, slots=True)
class Apply:
    """Server-side apply: what ``manager`` wants of the object, all of it; creates what is missing.

    What the manager named before and does not name any more is removed. ``Conflict`` where another
    manager owns a field with another value, unless forced.
    """

    body: Object
    manager: str
    force: bool = False


Patch = Merge | Strategic | Apply

NO_ANNOTATIONS: Mapping[str, str] = {}


class Objects(Protocol):
    """A store of objects. Every method raises ``refusals.ObjectsError`` and nothing else."""

    def list(
        self,
        kind: kinds.Kind,
        *,
        namespace: str = "",
        selector: selectors.Selector = selectors.EVERYTHING,
    ) -> AsyncGenerator[Page, None]:
        """The objects of a kind, page by page, at least one page; no namespace: all of them."""

    def watch(
        self,
        kind: kinds.Kind,
        since: str,
        *,
        namespace: str = "",
        selector: selectors.Selector = selectors.EVERYTHING,
    ) -> AsyncGenerator[Change, None]:
        """The changes after a revision, until the store ends the watch; close it when done.

        A store across a wire tells first that the watch has begun: a bookmark at ``since``.
        """

    async def get(self, ref: Ref) -> Object:
        """One object, or ``NotFound``."""

    async def create(self, kind: kinds.Kind, body: Object, *, dry_run: bool = False) -> Object:
        """A new object as the store keeps it; ``metadata.generateName`` gives a free name."""

    async def patch(
        self, ref: Ref, patch: Patch, *, subresource: str = "", dry_run: bool = False
    ) -> Object:
        """The object after the patch; ``subresource`` is empty or ``status``."""

    async def delete(
        self,
        ref: Ref,
        *,
        uid: str = "",
        revision: str = "",
        grace_seconds: int | None = None,
        dry_run: bool = False,
    ) -> None:
        """Remove it; ``Conflict`` where UID or revision are given and are other ones now."""

    async def bind(
        self,
        pod: Ref,
        node: str,
        *,
        uid: str = "",
        annotations: Mapping[str, str] = NO_ANNOTATIONS,
    ) -> None:
        """Give a pod its node, and annotations with it; ``Conflict`` where it has one already."""

    async def evict(
        self, pod: Ref, *, uid: str = "", grace_seconds: int | None = None, dry_run: bool = False
    ) -> None:
        """Delete a pod as its disruption budget allows.

        ``TooMany`` where the budget is used up: later, at best after ``retry_after``. ``Failed``
        where several budgets cover the pod: somebody must repair that first.
        """

    def now(self) -> float:
        """The time by which the store dates objects, as far as is known here."""

    async def close(self) -> None:
        """Close connections and files; running calls end with ``Unavailable``."""


async def collect(pages: AsyncGenerator[Page, None]) -> Page:
    """All pages of a list at once, for kinds with few objects."""
    items: tuple[Object, ...] = ()
    revision = ""
    async for page in pages:
        items += page.items
        revision = page.revision
    return Page(items, revision)


#: What a JSON object is. The class of nearly all comes first: the other asks many more questions.
_MAPPING = dict, Mapping


def listed(body: Object, key: str) -> list[Any]:
    """A field that is a list; empty where it is none."""
    several = body.get(key)
    return several if isinstance(several, list) else []


def each(body: Object, path: str) -> Iterator[tuple[str, Object]]:
    """The objects of a list, which the last step of a path names, each with its own path."""
    for place, entry in enumerate(listed(body, path.rpartition(".")[2])):
        if isinstance(entry, Mapping):
            yield f"{path}[{place}]", entry


def part(body: Object, name: str) -> Mapping[str, Any]:
    """A field that is an object; empty where it is none."""
    value = body.get(name)
    return value if isinstance(value, _MAPPING) else {}


def parts(body: Object, name: str) -> list[Mapping[str, Any]]:
    """The objects of a field that is a list; empty where it is none."""
    value = body.get(name)
    return [item for item in value if isinstance(item, _MAPPING)] if isinstance(value, list) else []


def metadata(body: Object) -> Mapping[str, Any]:
    """The object's metadata; empty where there is none."""
    return part(body, "metadata")


def ref(kind: kinds.Kind, body: Object) -> Ref:
    """An object as the store names it."""
    return Ref(kind, text(body, "name"), text(body, "namespace"))


def text(body: Object, key: str) -> str:
    """A text of the metadata, empty where there is none."""
    inner = part(body, "metadata").get(key)
    return inner if isinstance(inner, str) else ""


def revision(body: Object) -> str:
    """The revision at which the object was last written."""
    return text(body, "resourceVersion")


def older(revision: str, other: str) -> bool:
    """Whether a revision is from before another; where nobody can say, it is not.

    Kubernetes lets clients compare revisions as numbers (resourceVersion, since 1.35).
    """
    numbers = all(each.isascii() and each.isdecimal() for each in (revision, other))
    return numbers and int(revision) < int(other)


def key(body: Object) -> tuple[str, str]:
    """Namespace and name: unique within a kind at any one time."""
    meta = part(body, "metadata")
    namespace, name = meta.get("namespace"), meta.get("name")
    return (
        namespace if isinstance(namespace, str) else "",
        name if isinstance(name, str) else "",
    )
