"""What is wrong with the quotas of a file: each mistake with its place and its remedy.

Covers: ElasticQuotas and ElasticQuotaProfiles beside each other, as a scheduler would read them;
with nodes in the file, minimums that add up to more than there is.
Does not cover: the checks (``quotas.validation``), printing (``cli.check``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from koordlet.kubeapi import elastic_quotas
from koordlet.kubeapi.elastic_quotas import ElasticQuota
from koordlet.model.record import dataclass
from koordlet.scheduler.cluster import inventory
from koordlet.scheduler.loop.configuration import Configuration
from koordlet.scheduler.loop.core import Core

_NOTE = "annotation "
_REWRITE = "write what the field takes: docs/quotas.md has an example"


@dataclass(frozen=True, slots=True)
class Mistake:
    """One thing that is wrong."""

    object: str
    path: str
    message: str
    fix: str
    #: The object is in force all the same.
    warning: bool = False


def review(
    bodies: Sequence[Mapping[str, Any]], configuration: Configuration
) -> tuple[int, list[Mistake]]:
    """The number of quotas and profiles, and their mistakes in the order of the objects."""
    cluster = inventory.load(bodies, configuration.deciding)
    core = Core(configuration.profiles, decoder=cluster.decoder)
    for namespace, name in cluster.namespace_quotas.items():
        core.quotas.name_namespace(namespace, name)
    mistakes = []
    for profile in cluster.quota_profiles:
        core.quotas.put_profile(profile)
        whose = f"ElasticQuotaProfile {profile.id}"
        mistakes += [Mistake(whose, _place(error), error, _REWRITE) for error in profile.errors]
    for node in filter(None, cluster.columns.nodes):
        core.node(None, node, 0.0)
    for pods in cluster.columns.pods:
        for pod in pods.values():
            core.quotas.put(pod)
    for quota in cluster.quotas:
        core.quotas.put_quota(quota)
    core.quotas.settle(0.0)
    for quota in cluster.quotas:
        mistakes += _of_quota(core, quota)
    book = core.quotas.book
    if book.total and (words := book.overcommitted()):
        fix = "lower them or add nodes: until then each is scaled down in proportion"
        mistakes.append(Mistake("all quotas", "spec.min", words, fix, warning=True))
    return len(cluster.quotas) + len(cluster.quota_profiles), mistakes


def _place(error: str) -> str:
    """The field that an error begins with."""
    return error.partition(" ")[0].rstrip(":")


def _of_quota(core: Core, quota: ElasticQuota) -> Iterator[Mistake]:
    whose, book = f"ElasticQuota {quota.id}", core.quotas.book
    if quota.name not in elastic_quotas.BUILT_IN:
        for objection in book.objections(quota):
            yield Mistake(whose, objection.path, objection.message, objection.fix)
    for problem in quota.problems:
        key = problem.removeprefix(_NOTE).partition(":")[0]
        where = f"metadata.annotations[{key}]" if problem.startswith(_NOTE) else key
        fix = "write it as JSON, or remove it: it counts for nothing"
        yield Mistake(whose, where, problem, fix, warning=True)
    for namespace, owner in book.listed_elsewhere(quota).items():
        words = f"namespace {namespace} is listed by quota {owner} as well, which is older"
        where = f"metadata.annotations[{elastic_quotas.NAMESPACES}]"
        fix = f"leave {namespace} out of one of the two: its pods are in {owner}"
        yield Mistake(whose, where, words, fix, warning=True)
