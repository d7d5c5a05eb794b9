"""Makes an object say what is ours by server-side apply, and by a plain patch where that cannot be.

Covers: apply with our field manager, what an apply leaves behind, servers that cannot apply.
Does not cover: what is ours (``report.objects``), when it is written (``rows``).

Rules:
1. ``ours`` is all that we want of the object. What was ours before and is not in it any more goes:
   the server knows what we applied. ``None``: a field shall not be there, whoever wrote it.
2. An apply leaves a field to which somebody else has a right as well: to an entry of our own from
   before we applied, or to a program that is gone. What ``ours`` has as ``None`` and is there
   afterwards is taken away by a merge patch.
3. A server that takes no apply patch (415), or whose definition of the kind lacks a field of ours
   (apply refuses what a merge patch prunes), is sent a plain patch. It is said once, and apply is
   tried again when the object is read again.
4. Owners of the object are applied, and not patched: a merge patch would replace those of others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from koordlet import log
from koordlet.kubeapi import kinds, objects, refusals
from koordlet.model.record import dataclass
from koordlet.report.objects import holders

#: How API servers say that the schema of the kind does not hold what was applied, or what is there.
_UNTYPED = ("typed patch object", "typed live object", "not declared in schema")


@dataclass(slots=True)
class Hand:
    """Writes the objects of one kind."""

    #: Why apply is not tried; empty: it is.
    plain: str = ""
    _said: str = ""

    def retry(self) -> None:
        """Try to apply again: a definition may have come."""
        self.plain = ""

    async def put(
        self,
        store: objects.Objects,
        ref: objects.Ref,
        ours: Mapping[str, Any],
        *,
        owners: Sequence[Mapping[str, Any]] = (),
        revision: str = "",
        subresource: str = "",
        force: bool = True,
    ) -> objects.Object:
        """The object after it; ``Conflict``: the revision is another, or (unforced) an owner."""
        if not self.plain:
            metadata = bare(objects.metadata(ours))
            metadata |= {"ownerReferences": list(owners)} if owners else {}
            metadata |= {"resourceVersion": revision} if revision else {}
            patch = objects.Apply({**bare(ours), "metadata": metadata}, holders.MANAGER, force)
            try:
                after = await store.patch(ref, patch, subresource=subresource)
            except refusals.ObjectsError as error:
                # Else the server cannot apply at all, whatever the object.
                known = any(word in error.message for word in _UNTYPED)
                if not known and error.reason != "UnsupportedMediaType":
                    raise
                self._give_up(ref, error)
            else:
                left = _left(ours, after)
                if not left:
                    return after
                clearing = objects.Merge(left, objects.revision(after))
                return await store.patch(ref, clearing, subresource=subresource)
        kind = objects.Strategic if ref.kind == kinds.NODES else objects.Merge
        return await store.patch(ref, kind(ours, revision), subresource=subresource)

    async def make(
        self,
        store: objects.Objects,
        ref: objects.Ref,
        ours: Mapping[str, Any],
        owners: Sequence[Mapping[str, Any]],
    ) -> objects.Object:
        """Create an object; ``Conflict`` if another client has just created it."""
        try:
            return await self.put(store, ref, ours, owners=owners, force=False)
        except refusals.NotFound:
            if not self.plain:
                raise
        metadata = {**objects.metadata(ours), "name": ref.name, "ownerReferences": list(owners)}
        return await store.create(ref.kind, {**ours, "metadata": metadata})

    def _give_up(self, ref: objects.Ref, error: refusals.ObjectsError) -> None:
        self.plain = str(error)
        if self.plain != self._said:
            self._said = self.plain
            log.get().info("objects.patched", kind=ref.kind.name, detail=self.plain)


def bare(ours: Mapping[str, Any]) -> dict[str, Any]:
    """Copy without the given fields, and without mappings that become empty."""
    made: dict[str, Any] = {}
    for key, value in ours.items():
        inner = bare(value) if isinstance(value, Mapping) else value
        if inner is not None and (inner != {} or not value):
            made[key] = inner
    return made


def _left(ours: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """The patch that takes away what shall not be there and is."""
    made: dict[str, Any] = {}
    for key, value in ours.items():
        there = after.get(key)
        if value is None and key in after:
            made[key] = None
        elif isinstance(value, Mapping) and isinstance(there, Mapping):
            inner = _left(value, there)
            if inner:
                made[key] = inner
    return made
