"""Wanted ``schemata`` of each resctrl group. Pure.

Covers: the ways and the bandwidth of a group, of its partition, what is refused.
Does not cover: which groups there are (``resctrl``), arithmetic (``values``).
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence

from koordlet.model import pod, prepared_claim, qos, resctrl, schemata
from koordlet.model.record import dataclass
from koordlet.policy.resctrl import annotation
from koordlet.policy.resctrl import values as resctrl_values

#: Modes of groups whose ways nobody else may have.
_ALONE = frozenset({"exclusive", "pseudo-locked"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Want:
    """One wanted resctrl group."""

    name: str
    wish: annotation.Wish
    #: The pod that it is for; ``None`` for the group of a class or a claim.
    pod: pod.Pod | None = None
    #: The resource claim that it is for.
    claim: prepared_claim.PreparedClaim | None = None

    @property
    def subject(self) -> str:
        """The subject of conditions about this group."""
        if self.claim is not None:
            return self.claim.holder
        return self.pod.key if self.pod else f"class {self.name}"

    @property
    def class_name(self) -> str:
        """The group of its class; a claim has none, and its share of the whole machine."""
        if self.claim is not None:
            return ""
        return qos.SLO_CLASS.get(self.pod.qos, "") if self.pod else self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharing:
    """Inputs of all schemata values at one moment."""

    there: resctrl.Resctrl
    #: Settings of the policy that say how percentages count.
    levels: tuple[int, ...]
    bandwidth: float | None
    slow_bandwidth: float | None
    peer: bool
    partitions: tuple[resctrl_values.Partition, ...]
    #: ``MB:0`` to the largest value ever seen there.
    unlimited: Mapping[str, int]
    #: The groups of this moment, in their order.
    wanted: Sequence[Want]
    #: Says a condition: its type, whom it is about, the message.
    say: Callable[[str, str, str], None]

    def values(self, want: Want) -> tuple[dict[str, dict[int, int]], list[str]]:
        """Values by resource and domain, without refused ones, and their reasons."""
        values: dict[str, dict[int, int]] = {}
        how: dict[str, None] = {}
        for cache in self.there.hardware.caches:
            if cache.level in self.levels or not any(
                cache.level in self.levels for cache in self.there.hardware.caches
            ):
                values[cache.name] = self._ways(want, cache, how)
        for bandwidth in self.there.hardware.bandwidths:
            if bandwidth.name == "MB" or (bandwidth.name == "SMBA" and self.slow_bandwidth):
                values[bandwidth.name] = self._bandwidth(want, bandwidth, how)
        for resource, domain, why in list(schemata.problems(self.there.hardware, values)):
            self.say("ResctrlRefused", f"{resource} of domain {domain}: {why}", want.subject)
            del values[resource][domain]
        return values, list(how)

    def _ways(self, want: Want, cache: resctrl.Cache, how: dict[str, None]) -> dict[int, int]:
        named = {**want.wish.ways_of, **want.wish.alone_of}
        self._unknown_caches(want.subject, cache.name, named, cache.domains)
        values: dict[int, int] = {}
        for domain in cache.domains:
            value, taken = self._asked(want, cache, domain)
            if value is None:
                continue
            if value.number is None:
                message = f"{cache.name} of domain {domain}: {value.how}"
                self.say("ResctrlRefused", message, want.subject)
                continue
            exclusive = _exclusive(self.there, want.name, cache, domain) | taken
            ways = resctrl_values.without(value.number, exclusive)
            if not ways:
                # AMD takes an empty mask: the group would have no cache at all.
                message = f"{cache.name} of domain {domain}: {value.how}: exclusive groups have all"
                self.say("ResctrlRefused", message, want.subject)
                continue
            how[f"{cache.name} {value.how}"] = None
            if ways != value.number:
                how[f"without the ways {exclusive:x} of exclusive groups"] = None
            values[domain] = ways
        return values

    def _asked(
        self, want: Want, cache: resctrl.Cache, domain: int
    ) -> tuple[resctrl_values.Value | None, int]:
        """The requested mask, and the ways that other groups have exclusively."""
        taken = self._alone(cache, want, domain)
        alone = want.wish.alone_in(domain)
        if alone is not None:
            return resctrl_values.top(cache, alone, taken), 0
        wish = want.wish.range_in(domain)
        if wish is None:
            return None, taken
        part = resctrl_values.partition_of(self.partitions, want.class_name)
        if part is None:
            return resctrl_values.mask(cache, *wish), taken
        return part.mask(cache, *wish), taken

    def _alone(self, cache: resctrl.Cache, want: Want, domain: int) -> int:
        """Ways that other groups requested exclusively; earlier groups win."""
        taken = 0
        for other in self.wanted:
            alone = other.wish.alone_in(domain)
            if alone is None:
                continue
            if other is want:
                return taken
            taken |= resctrl_values.top(cache, alone, taken).number or 0
        return taken

    def _unknown_caches(
        self, subject: str, resource: str, asked: Iterable[int], there: Sequence[int]
    ) -> None:
        for cache in asked:
            if cache not in there:
                self.say("ResctrlRefused", f"{resource}: there is no cache {cache}", subject)

    def _bandwidth(
        self, want: Want, resource: resctrl.Bandwidth, how: dict[str, None]
    ) -> dict[int, int]:
        self._unknown_caches(want.subject, resource.name, want.wish.percent_of, resource.domains)
        slow = resource.name == "SMBA"
        against = resctrl_values.reference(
            self.slow_bandwidth if slow else self.bandwidth,
            self.there.memory_gigabytes,
            len(resource.domains),
            peer=self.peer,
        )
        part = resctrl_values.partition_of(self.partitions, want.class_name)
        values: dict[int, int] = {}
        for domain in resource.domains:
            percent = want.wish.percent_in(domain)
            if percent is None:
                continue
            if part is not None:
                percent = part.percent(percent)
            value = resctrl_values.bandwidth(resource, domain, percent, against, peer=self.peer)
            if value.number is None:
                message = f"{resource.name} of domain {domain}: {value.how}"
                self.say("ResctrlRefused", message, want.subject)
                continue
            how[f"{resource.name} {value.how}"] = None
            if percent < 100:
                values[domain] = value.number
            elif want.name in self.there.groups:
                # A group is born without a limit, and only its file tells what that is here.
                whole = resource.unit is resctrl.Unit.EIGHTHS
                seen = self.unlimited.get(f"{resource.name}:{domain}", 0)
                values[domain] = max(value.number, seen) if whole else value.number
        return values


def _exclusive(there: resctrl.Resctrl, own: str, cache: resctrl.Cache, domain: int) -> int:
    """Ways of exclusive groups, and of pseudo-locked regions.

    With CDP code and data are in one cache: what a group has exclusively of one, nobody may have of
    the other (fs/resctrl/rdtgroup.c, ``rdtgroup_cbm_overlaps``).
    """
    return functools.reduce(
        operator.or_,
        (
            value
            for name, group in there.groups.items()
            if name != own and group.mode in _ALONE
            for resource, where, value in schemata.parse(group.schemata).items()
            if where == domain and schemata.is_mask(resource) and cache.shares_with(resource)
        ),
        0,
    )
