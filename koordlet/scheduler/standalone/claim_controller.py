"""Reconciles the claims of a standalone scheduler's store.

Covers: making claims of templates and telling pods their names, devices of pods that went, taints
of devices. Does not cover: what should be written (``claims``: pure), choosing devices.

Everything is derived anew from what the store has: a restart between two writes repairs itself. A
claim that was made is found again by its owner and its annotation.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any

from koordlet import log
from koordlet.kubeapi import disruption_target, informer, kinds, objects, refusals
from koordlet.model import moment
from koordlet.scheduler.objects import generated_claims, resource_claims, resource_slices
from koordlet.scheduler.objects.wire import BadObjectError
from koordlet.scheduler.standalone import budgets, claims

_WHY = "Device Taint manager: deleting due to NoExecute taint"

Guarded = Callable[[str, Awaitable[None]], Awaitable[None]]


class ClaimController:
    """The claims of one store; ``guarded`` runs a step that costs only itself."""

    def __init__(self, store: objects.Objects, guarded: Guarded, wall: Callable[[], float]) -> None:
        self._store, self._guarded, self._wall = store, guarded, wall
        self._claims = informer.Informer(store, kinds.RESOURCE_CLAIMS, dict)
        self._templates = informer.Informer(
            store, kinds.RESOURCE_CLAIM_TEMPLATES, generated_claims.decode_template
        )
        self._slices = informer.Informer(store, kinds.RESOURCE_SLICES, resource_slices.decode)
        #: Claims that were made, by pod and entry: the watch may show them later than the pod.
        self._names: dict[tuple[str, str], str] = {}
        #: The template that is not there and was logged, by UID of the pod.
        self._warned: dict[str, str] = {}

    def sources(self) -> Iterator[informer.Informer[Any]]:
        """What is watched."""
        yield from (self._claims, self._templates, self._slices)

    async def once(self, pods: list[dict[str, Any]]) -> None:
        """Reconcile all claims once."""
        own = claims.by_owner(self._claims.snapshot.values())
        for pod in pods:
            if objects.part(pod, "spec").get("resourceClaims"):
                await self._guarded(objects.text(pod, "name"), self._made(pod, own))
        uids = {objects.text(pod, "uid") for pod in pods}
        self._names = {key: name for key, name in self._names.items() if key[0] in uids}
        self._warned = {uid: name for uid, name in self._warned.items() if uid in uids}
        living = {objects.text(pod, "uid"): not budgets.ended(pod) for pod in pods}
        tainted = claims.harmful(self._slices.snapshot.values())
        by_uid = {objects.text(pod, "uid"): pod for pod in pods}
        for (_, name), body in self._claims.snapshot.items():
            await self._guarded(name, self._settled(body, living, by_uid, tainted))

    async def _made(self, pod: dict[str, Any], own: Mapping[str, claims.OwnClaims]) -> None:
        """Make what a pod's templates say, then tell it the names; ``own``: claims by owner."""
        namespace, name = objects.text(pod, "namespace"), objects.text(pod, "name")
        names: dict[str, str] = {}
        uid = objects.text(pod, "uid")
        for each in claims.missing(pod, own.get(uid, {})):
            key = uid, each.entry.name
            template = self._templates.get(each.entry.template, namespace)
            known = each.made or self._names.get(key)
            if known is None and template is None:
                self._warn(pod, each.entry.template)
            elif known is None and template is not None:
                self._names[key] = ""  # it is being made
                body = generated_claims.of_template(template, name, uid, each.entry.name)
                try:
                    made = await self._store.create(kinds.RESOURCE_CLAIMS, body)
                except refusals.ObjectsError:
                    del self._names[key]
                    raise
                known = self._names[key] = objects.text(made, "name")
            if known:
                names[each.entry.name] = known
        if names:
            patch = objects.Merge(claims.named(pod, names), objects.revision(pod))
            await self._store.patch(objects.ref(kinds.PODS, pod), patch, subresource="status")

    def _warn(self, pod: dict[str, Any], template: str) -> None:
        uid = objects.text(pod, "uid")
        if self._warned.get(uid) != template:
            self._warned[uid] = template
            key = "/".join(objects.key(pod))
            log.get().warning("scheduler.claim_template_missing", pod=key, template=template)

    async def _settled(
        self,
        body: dict[str, Any],
        living: Mapping[str, bool],
        pods: Mapping[str, dict[str, Any]],
        tainted: Mapping[claims.Device, list[resource_slices.DeviceTaint]],
    ) -> None:
        """Bring one claim to what it shall be, and its pods away from devices that end them."""
        claim = resource_claims.decode(body)
        where = objects.ref(kinds.RESOURCE_CLAIMS, body)
        for uid in claims.leaving(claim, tainted, self._wall()):
            if uid in pods and living.get(uid):
                await self._sent_away(pods[uid])
        wish = claims.wish(body, claim, living)
        revision = claim.resource_version
        if wish.status is not None:
            patch = objects.Merge({"status": wish.status}, revision)
            revision = objects.revision(await self._store.patch(where, patch, subresource="status"))
        if wish.finalizers is not None:
            patch = objects.Merge({"metadata": {"finalizers": wish.finalizers or None}}, revision)
            try:
                await self._store.patch(where, patch)
            except refusals.NotFound:
                return  # it waited for nothing else
        if wish.delete:
            await self._store.delete(where, uid=claim.uid)

    async def _sent_away(self, pod: dict[str, Any]) -> None:
        if objects.metadata(pod).get("deletionTimestamp") is not None:
            return
        where = objects.ref(kinds.PODS, pod)
        condition = disruption_target.condition(
            reason="DeletionByDeviceTaintManager",
            message=_WHY,
            at=moment.spell(self._wall()),
            generation=objects.metadata(pod).get("generation"),
        )
        patch = objects.Strategic({"status": {"conditions": [condition]}})
        try:
            await self._store.patch(where, patch, subresource="status")
            await self._store.delete(where, uid=objects.text(pod, "uid"))
        except (refusals.NotFound, BadObjectError):
            return
        log.get().info("scheduler.pod_leaves", pod=str(where), node="")
