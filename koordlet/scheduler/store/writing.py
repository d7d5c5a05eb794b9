"""The rules of an API server for writing an object, as pure functions.

Covers: birth, patches of the object and of its status, generation, owners of fields, what nobody
may change. Does not cover: the file (``rows``), binding and eviction (``pods``).
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from koordlet.kubeapi import kinds, labels, objects, refusals
from koordlet.model.record import dataclass
from koordlet.scheduler.store import merging, ownership, rules

Body = dict[str, Any]

_MOST = 253

#: Set by the store at birth and never changed by anybody.
_FIXED = (
    *("name", "namespace", "uid", "creationTimestamp", "generation", "generateName"),
    *("resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds", "managedFields"),
)

_MARKS = ("labels", "annotations")


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteContext:
    """The time, UID and field manager of a write."""

    at: float
    #: For an object that is born.
    uid: str
    manager: str

    @property
    def stamp(self) -> str:
        """The time as a Time."""
        return stamp(self.at)


def stamp(at: float) -> str:
    """RFC 3339, whole seconds."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))


@dataclass(frozen=True, slots=True)
class Replacement:
    """A whole object in place of the stored one (PUT)."""

    body: objects.Object


Write = objects.Patch | Replacement


def named(kind: kinds.Kind, body: objects.Object, suffix: str) -> objects.Ref:
    """The name of a new object; ``Invalid`` where it is not a name."""
    check_kind(kind, body)
    name = objects.text(body, "name")
    if not name and objects.text(body, "generateName"):
        name = objects.text(body, "generateName")[: _MOST - len(suffix)] + suffix
    namespace = objects.text(body, "namespace")
    if not kind.namespaced and namespace:
        raise _invalid(kind, name, "metadata.namespace", "FieldValueForbidden", "not allowed here")
    if not name:
        why = "name or generateName is required"
        raise _invalid(kind, name, "metadata.name", "FieldValueRequired", why)
    if not labels.is_subdomain(name):
        why = "a name has at most 253 of a-z, 0-9, '-' and '.', letters or digits at both ends"
        raise _invalid(kind, name, "metadata.name", "FieldValueInvalid", why)
    return objects.Ref(kind, name, (namespace or "default") if kind.namespaced else "")


def check_kind(kind: kinds.Kind, body: objects.Object) -> None:
    """``Malformed`` where an object says that it is of another kind."""
    why = ""
    if not isinstance(body.get("metadata", {}), Mapping):
        why = "metadata is not an object"
    for field, wanted in (("apiVersion", kind.api_version), ("kind", kind.name)):
        if body.get(field, wanted) != wanted:
            why = f"{field} is {str(body[field])[:100]!r}, not {wanted!r}"
    if why:
        raise refusals.Malformed(why, culprit=str(kind), reason="BadRequest")


def born(ref: objects.Ref, body: objects.Object, context: WriteContext) -> Body:
    """A new object as it is stored; its creator owns all fields."""
    new = _bare(ref, body, context)
    owner = ownership.FieldManager(context.manager, "Update")
    return _with_owners(new, ownership.update({}, new, {}, owner, _keys(ref)), None, context)


def _bare(ref: objects.Ref, body: objects.Object, context: WriteContext) -> Body:
    if objects.revision(body):
        raise refusals.Malformed(
            "resourceVersion should not be set on objects to be created",
            culprit=str(ref),
            reason="BadRequest",
        )
    rule = rules.of(ref.kind)
    known = {key: value for key, value in objects.metadata(body).items() if key not in _FIXED}
    metadata: Body = {
        "name": ref.name,
        "generateName": objects.text(body, "generateName"),
        "namespace": ref.namespace,
        "uid": context.uid,
        "creationTimestamp": context.stamp,
        "generation": int(rule.generation),
    }
    metadata = {key: value for key, value in metadata.items() if value}
    result: Body = {
        "apiVersion": ref.kind.api_version,
        "kind": ref.kind.name,
        **{key: value for key, value in body.items() if key not in {"apiVersion", "kind"}},
        "metadata": {**metadata, **known},
    }
    if rule.status and not rule.status_at_birth:
        result.pop("status", None)
    if ref.kind == kinds.PODS:
        result["status"] = _first_status(result)
    return result


def applied(ref: objects.Ref, patch: objects.Apply, context: WriteContext) -> Body:
    """A new object that is born by an apply."""
    body = _applicable(patch.body, rules.of(ref.kind), "")
    new = _bare(ref, body, context)
    owner = ownership.FieldManager(patch.manager, "Apply")
    return _with_owners(new, {owner: frozenset(ownership.fields(body, _keys(ref)))}, None, context)


def patched(
    ref: objects.Ref, old: Body, patch: Write, subresource: str, context: WriteContext
) -> Body:
    """An object after a patch; equal to the old one where nothing changes."""
    rule = rules.of(ref.kind)
    if subresource not in {"", "status"} or (subresource and not rule.status):
        raise refusals.NotFound("there is no such subresource", culprit=f"{ref}/{subresource}")
    check_kind(ref.kind, patch.body)
    check_revision(ref, old, objects.revision(patch.body))
    check_uid(ref, old, objects.text(patch.body, "uid"))
    wanted, owned = _wanted(ref, old, patch, subresource)
    new = _allowed(old, wanted, rule, subresource)
    if rule.generation and _wish(new) != _wish(old):
        new["metadata"]["generation"] = int(old["metadata"].get("generation") or 0) + 1
    owner = ownership.FieldManager(context.manager, "Update", subresource)
    if isinstance(patch, objects.Apply):
        owner = ownership.FieldManager(patch.manager, "Apply", subresource)
    known = old["metadata"].get("managedFields")
    if owned is None:
        owned = ownership.update(old, new, ownership.read(known), owner, _keys(ref))
    return _with_owners(new, owned, known, context, None if new == old else owner)


def check_revision(ref: objects.Ref, old: Body, wanted: str) -> None:
    """``Conflict`` where an expected revision is not the present one."""
    if wanted and wanted != objects.revision(old):
        raise refusals.Conflict(
            "the object has been modified",
            culprit=str(ref),
            fix="read it again and repeat",
            reason="Conflict",
        )


def check_uid(ref: objects.Ref, old: Body, wanted: str) -> None:
    """``Conflict`` where the name belongs to another object now."""
    uid = objects.text(old, "uid")
    if wanted and wanted != uid:
        why = f"the UID is {uid}, not {wanted}"
        raise refusals.Conflict(why, culprit=str(ref), reason="Conflict")


def _wanted(
    ref: objects.Ref, old: Body, patch: Write, subresource: str
) -> tuple[Body, ownership.Owned | None]:
    """The object after the patch, before the rules of its kind."""
    rule = rules.of(ref.kind)
    match patch:
        case Replacement(body=body):
            return dict(body), None
        case objects.Merge(body=body, revision=revision):
            check_revision(ref, old, revision)
            return merging.merge(old, body), None
        case objects.Strategic(body=body, revision=revision):
            if not rule.strategic:
                raise refusals.Refused(
                    "custom resources do not accept strategic merge patches",
                    culprit=str(ref),
                    fix="use a merge patch or apply",
                    reason="UnsupportedMediaType",
                )
            check_revision(ref, old, revision)
            return merging.strategic(old, body, {**_keys(ref), **rules.STRATEGIC_KEYS}), None
        case objects.Apply(body=body, manager=manager, force=force):
            owner = ownership.FieldManager(manager, "Apply", subresource)
            before = ownership.read(old["metadata"].get("managedFields"))
            mine = _applicable(body, rule, subresource)
            return ownership.apply(old, mine, before, owner, _keys(ref), force=force)


def _applicable(body: objects.Object, rule: rules.KindRule, subresource: str) -> Body:
    """The part of an applied object that the resource or the subresource takes."""
    if objects.metadata(body).get("managedFields"):
        raise refusals.Malformed("metadata.managedFields must be nil", reason="BadRequest")
    if subresource:
        status = {key: value for key, value in body.items() if key == "status"}
        marks = _marks(objects.metadata(body)) if rule.status_with_metadata else {}
        return {**status, **({"metadata": marks} if marks else {})}
    return {key: value for key, value in body.items() if key != "status" or not rule.status}


def _allowed(old: Body, wanted: Body, rule: rules.KindRule, subresource: str) -> Body:
    """The wanted object, cut to what this resource or subresource may change."""
    metadata = dict(objects.metadata(wanted))
    if subresource:
        kept = {key: value for key, value in old["metadata"].items() if key not in _MARKS}
        metadata = {**kept, **_marks(metadata)} if rule.status_with_metadata else old["metadata"]
    # The status comes with its subresource, all else with the object.
    new, other = (dict(old), wanted) if subresource else (dict(wanted), old)
    if rule.status:
        new.pop("status", None)
        new |= {"status": other["status"]} if "status" in other else {}
    fixed = {key: old["metadata"][key] for key in _FIXED if key in old["metadata"]}
    free = {key: value for key, value in metadata.items() if key not in _FIXED}
    return {
        **new,
        "apiVersion": old["apiVersion"],
        "kind": old["kind"],
        "metadata": {**fixed, **free},
    }


def _marks(metadata: Mapping[str, Any]) -> Body:
    return {key: metadata[key] for key in _MARKS if key in metadata}


def _keys(ref: objects.Ref) -> merging.Keys:
    keys = rules.of(ref.kind).list_keys
    return rules.OWN_KEYS if keys is None else keys


def _wish(body: Body) -> Body:
    return {key: value for key, value in body.items() if key not in {"metadata", "status"}}


def _with_owners(
    body: Body,
    owned: ownership.Owned,
    old: Any,
    context: WriteContext,
    writer: ownership.FieldManager | None = None,
) -> Body:
    entries = ownership.write(owned, old, body["apiVersion"], context.stamp, writer)
    return {**body, "metadata": {**body["metadata"], "managedFields": entries}}


def _first_status(pod: Body) -> Body:
    if not objects.part(pod, "spec").get("schedulingGates"):
        return {"phase": "Pending"}
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "SchedulingGated",
        "message": "Scheduling is blocked due to non-empty scheduling gates",
    }
    return {"phase": "Pending", "conditions": [condition]}


def _invalid(kind: kinds.Kind, name: str, field: str, reason: str, why: str) -> refusals.Invalid:
    return refusals.Invalid(
        f"{field}: {why}",
        culprit=f"{kind} {name[:300]}".strip(),
        reason="Invalid",
        causes=(refusals.Cause(reason, why, field),),
    )
