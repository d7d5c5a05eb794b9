"""Quotas that are handed to a standalone scheduler, and taken from it.

Covers: refusing what would not be in force, what the objects of one call may rely on, deletion.
Does not cover: the checks (``quotas.validation``), all other objects (``standalone_api``).

Rules:
1. A quota is in force for the next object of a call, which may be below it, or stand before it.
2. A call that changes nothing answers as the one that changes would: the quotas that it was handed
   count as if they were in force.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from koordlet.kubeapi import elastic_quotas, kinds, objects, refusals
from koordlet.kubeapi.elastic_quotas import ElasticQuota, ElasticQuotaProfile
from koordlet.model import resources
from koordlet.scheduler.loop import runner
from koordlet.scheduler.quotas import validation
from koordlet.scheduler.quotas.amounts import Amounts
from koordlet.scheduler.quotas.book import QuotaBook
from koordlet.scheduler.quotas.pools import Pool

_DELETE = (
    "let its pods end and its children go first; or --force: pods move to the default quota,"
    " children below the root"
)


class QuotaIntake:
    """The quotas of one call."""

    def __init__(self, loop: runner.Loop, *, dry_run: bool) -> None:
        self.dry_run = dry_run
        self._loop = loop
        self._rehearsed = RehearsedQuotas(loop.core.quotas.book)

    def check(self, kind: kinds.Kind, body: objects.Object) -> None:
        """``Invalid`` where a quota would not be in force as it is written."""
        if kind != kinds.ELASTIC_QUOTAS:
            return
        quota, book = elastic_quotas.elastic_quota(body), self._loop.core.quotas.book
        beside = self._rehearsed if self.dry_run else book
        objection = next(book.objections(quota, beside.spec(quota.name), beside), None)
        if objection is not None:
            raise refusals.Invalid(objection.message, fix=objection.fix)

    def take(self, kind: kinds.Kind, made: objects.Object) -> None:
        """Let a quota count for the next object before the watch shows it (rules 1 and 2)."""
        quotas = self._loop.core.quotas
        if kind == kinds.ELASTIC_QUOTAS:
            quota = elastic_quotas.elastic_quota(made)
            (self._rehearsed if self.dry_run else quotas).put_quota(quota)
        elif kind == kinds.ELASTIC_QUOTA_PROFILES:
            profile = elastic_quotas.elastic_quota_profile(made)
            (self._rehearse_profile if self.dry_run else quotas.put_profile)(profile)
        else:
            return
        if not self.dry_run:
            quotas.settle(self._loop.now())

    def _rehearse_profile(self, profile: ElasticQuotaProfile) -> None:
        if profile.errors:
            return
        pool = Pool(profile)
        for node in filter(None, self._loop.core.pod_cache.columns.nodes):
            pool.pour(node, 1)
        self._rehearsed.put_quota(pool.root(self._loop.core.quotas.book.owner(profile.quota_name)))


class RehearsedQuotas:
    """The quotas in force as they would be with those of a call (rule 2)."""

    def __init__(self, book: QuotaBook) -> None:
        self._book = book
        self._put: dict[str, ElasticQuota] = {}
        self.pods, self.guaranteed, self.self_used = book.pods, book.guaranteed, book.self_used

    def put_quota(self, quota: ElasticQuota) -> None:
        """Take in what would be in force."""
        self._put[quota.name] = quota

    def spec(self, name: str) -> ElasticQuota | None:
        """The quota of a name."""
        return self._put.get(name) or self._book.spec(name)

    def parent(self, name: str) -> str:
        """The parent of the quota of a name; empty: there is no such quota."""
        quota = self._put.get(name)
        return self._book.parent(name) if quota is None else quota.parent

    def children(self, name: str) -> Iterator[ElasticQuota]:
        """The quotas whose parent this is."""
        known: Iterable[ElasticQuota] = self._book.children(name)
        yield from (child for child in known if child.name not in self._put)
        yield from (child for child in self._put.values() if child.parent == name)

    def minimums(self, name: str) -> Amounts:
        """The sum of their minimums."""
        return resources.total(child.min for child in self.children(name))


async def delete(store: objects.Objects, book: QuotaBook, name: str, *, force: bool) -> None:
    """Delete a quota.

    The root of a profile's tree goes with its profile, which would create it anew.
    """
    profiles = [pool.profile for pool, _ in book.pools() if pool.profile.quota_name == name]
    stored = book.stored(name)
    several = [each for each in (*profiles, stored) if each is not None and each.uid]
    if not several:
        raise refusals.NotFound("no quota has this name", culprit=name)
    why = validation.deletion(book, name)
    if why and (not force or name in elastic_quotas.BUILT_IN):
        raise refusals.Invalid(why, fix=_DELETE)
    for each in several:
        await store.delete(objects.Ref(each.kind, each.name, each.namespace), uid=each.uid)
