"""The mutating webhook as a process: ClusterColocationProfiles for the new pods of a cluster.

Covers: what it watches, HTTPS, the answer to an API server, its metrics. Does not cover: what
profiles do (``scheduler.colocation``), options (``cli.webhook``), its registration
(``deploy/webhook``).

Rules:
1. Every replica answers: it decides nothing that another one would have to know.
2. Until all is listed once it refuses, and whoever asks makes the pod without it.
3. In a pod that is told to stop it goes on answering for ``DRAIN`` seconds: services send it
   requests until they have heard of its end, and each would be a pod without its profiles.
4. It answers whoever reaches it, as webhooks do: API servers show no certificate by default. What
   it tells is what the profiles make of the pod that it was shown.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

from koordlet import log
from koordlet.http import authorisation, certificates, limits, message, routes, server
from koordlet.kubeapi import informer, kinds, objects, shapes
from koordlet.model.record import dataclass
from koordlet.scheduler.colocation import mutation, profile, review
from koordlet.scheduler.loop import metrics
from koordlet.scheduler.process import cluster_process

#: etcd takes no object above 1.5 MiB; all connections' bodies together are half of the memory
#: limit of the manifest. Nothing else is done here.
LIMITS = limits.ServerLimits(body_bytes=2 << 20, newcomer_share=0.9, repeat_share=0.9)
DRAIN = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookOptions:
    """What the command line says."""

    kubeconfig: str
    context: str = ""
    #: ``host:port``.
    address: str
    certificate: Path
    key: Path


class ColocationWebhook:
    """The handlers, over caches of what they need."""

    def __init__(self, store: objects.Objects) -> None:
        self._repeats = log.Repeats(asyncio.get_running_loop().time)
        self._profiles = informer.Informer(
            store, kinds.CLUSTER_COLOCATION_PROFILES, profile.read, changed=self._heard
        )
        self._namespaces = informer.Informer(store, kinds.NAMESPACES, lambda body: body)
        self._priorities = informer.Informer(store, kinds.PRIORITY_CLASSES, lambda body: body)
        self._ready = False
        #: Pods that were asked about, by result; profiles that one of them went without.
        self._reviews, self._faults = Counter[str](), 0

    async def run(self) -> None:
        """Keep the caches until cancelled."""
        watched = (self._profiles, self._namespaces, self._priorities)
        async with asyncio.TaskGroup() as group:
            for source in watched:
                group.create_task(source.run())
            for source in watched:
                await source.synced()
            self._ready = True
            log.get().info("webhook.ready", profiles=len(self._profiles))

    def routes(self) -> routes.Routes:
        """The table."""
        return routes.Routes(
            [
                ("POST", "/mutate", self._mutate),
                ("GET", "/livez", lambda _: message.text("ok\n")),
                ("GET", "/readyz", self._readiness),
                ("GET", "/metrics", self._metrics),
            ]
        )

    def _heard(
        self,
        _key: informer.Key,
        _old: profile.ColocationProfile | None,
        new: profile.ColocationProfile | None,
    ) -> None:
        if new is not None and new.fault:
            log.get().warning("colocation.profile_unread", profile=new.name, detail=new.fault)

    def _readiness(self, _request: message.HttpRequest) -> message.HttpResponse:
        if self._ready:
            return message.text("ok\n")
        why = self._profiles.health.error or "waiting for the API server"
        return message.text(f"{why}\n", status=503)

    def _metrics(self, _request: message.HttpRequest) -> message.HttpResponse:
        reviews = {(("result", result),): count for result, count in sorted(self._reviews.items())}
        lines = (
            *metrics.family("koordlet_webhook_reviews_total", "counter", reviews),
            *metrics.family("koordlet_webhook_faults_total", "counter", {(): self._faults}),
            *metrics.family("koordlet_webhook_profiles", "gauge", {(): len(self._profiles)}),
        )
        return message.text("\n".join((*lines, "")))

    def _mutate(self, request: message.HttpRequest) -> message.HttpResponse:
        if not self._ready:
            self._reviews["not_ready"] += 1
            return message.error(503, "busy", "not everything is listed yet", fix="ask again")
        try:
            asked = review.request(shapes.parse_bytes(request.body))
        except ValueError as error:
            self._reviews["malformed"] += 1
            return message.error(400, "malformed", str(error)[:300])
        pod = review.pod(asked)
        made = None if pod is None else self._colocated(asked, pod)
        self._reviews["changed" if made is not None and made.profiles else "unchanged"] += 1
        return message.document(review.answer(asked, pod, made))

    def _colocated(self, asked: review.Body, pod: review.Body) -> mutation.ColocatedPod:
        space = str(asked.get("namespace") or "")
        made = mutation.colocated(
            pod,
            self._profiles.snapshot.values(),
            mutation.namespace_of(space, self._namespaces.get(space)),
            self._priorities.get,
            review.identity(asked, pod),
        )
        self._faults += len(made.faults)
        for fault in made.faults:
            self._repeats.say(log.get().warning, "colocation.left_out", fault, detail=fault)
        return made


async def run(options: WebhookOptions) -> None:
    """Until a signal comes, or something ends that must not."""
    stop = cluster_process.stopping()
    tls = certificates.context(options.certificate, options.key)
    async with cluster_process.cluster(
        options.kubeconfig, options.context, "koordlet-webhook"
    ) as store:
        webhook = ColocationWebhook(store)
        listener = server.HttpServer(
            options.address,
            webhook.routes(),
            lambda _request, _peer: authorisation.ALLOWED,
            limits=LIMITS,
            tls=tls,
            setting="--listen",
        )
        log.get().info("webhook.started", https=f"https://{await listener.start()}/mutate")
        watching = asyncio.ensure_future(webhook.run())
        stopped = asyncio.ensure_future(stop.wait())
        try:
            await asyncio.wait({watching, stopped}, return_when=asyncio.FIRST_COMPLETED)
            log.get().info("webhook.stopping")
            await asyncio.wait({watching}, timeout=DRAIN if cluster_process.in_cluster() else 0)
            if watching.done():
                await watching
        finally:
            watching.cancel()
            stopped.cancel()
            await asyncio.gather(watching, stopped, return_exceptions=True)
            await listener.stop()
