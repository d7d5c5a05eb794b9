"""Members of a group that are gathered in the tree of the cluster's network.

Covers: which members are gathered together, where each of them goes, what their gang hears where
no place holds them. Does not cover: the tree (``network_tree``), deciding (``attempt``).

Rules:
1. Members whose gangs ask for the same are gathered together, in their order. The lower the layer
   that must gather them, the earlier they are decided; those that ask for nothing come last.
2. The lowest layer that must gather says among which places one is chosen; layers that are
   preferred, and the root without any, leave the choice to the order of candidates.
3. Bound members of the same gangs, and those whose room is held, are there already: where a layer
   must gather, their place is the only one.
4. All members that wait are gathered where a place holds them; else as many as a place holds, if
   the minimum is among them.
5. A candidate in which a member does not fit after all (amounts are not everything) is given up
   for the next.
6. Members of several classes fill the nodes of a candidate in its order, each the first that takes
   it; unless there are multiples, which count pods alone.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace

import numpy as np

from koordlet.kubeapi.pod_groups import GatherLayer
from koordlet.model.record import dataclass
from koordlet.scheduler.cluster.vectors import Ints, Rows
from koordlet.scheduler.gangs.book import GangBook, GangEntry, GangGroup
from koordlet.scheduler.gangs.gang import Gang
from koordlet.scheduler.gangs.gang_core import GangCore
from koordlet.scheduler.gangs.group_members import gang_key, row_of
from koordlet.scheduler.gangs.held_room import HeldRoom
from koordlet.scheduler.gangs.network_slots import NodeSlots, verdict
from koordlet.scheduler.gangs.network_tree import ClusterNetwork, NetworkTree, Share, TreeOffers
from koordlet.scheduler.gangs.trial import FailedMember, GroupTrial, GroupTrials
from koordlet.scheduler.objects.pods import Pod, PodClass

#: Places that a message names; an event takes 1 024 characters.
_NAMED = 8


def must_level(gang: Gang, tree: NetworkTree) -> int:
    """The level at whose places the members must be gathered; 0, the root: at none."""
    return max((tree.level(layer.layer) for layer in gang.gather if layer.must), default=0)


def refusal(gang: Gang, network: ClusterNetwork) -> str:
    """Why a gang cannot be gathered as it must be; empty: it can."""
    layers = network.layers
    unknown = [layer.layer for layer in gang.gather if layer.must and layer.layer not in layers]
    if not unknown:
        return ""
    why = network.problem or f"the network has the layers {', '.join(layers)}"
    return f"gang {gang.id} must be gathered by layer {unknown[0]}: {why}"


@dataclass(frozen=True, slots=True, eq=False)
class _Plan:
    """Where the members of a bundle go in one trial."""

    #: By member: its row; without, it hears ``failed``.
    rows: dict[str, int] = field(default_factory=dict)
    failed: FailedMember | None = None
    #: Of members of several classes: the rows that they fill in this order; by class those ahead.
    order: list[int] = field(default_factory=list)
    ahead: dict[PodClass, deque[int]] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class _Bundle:
    """Members that are gathered together (rule 1)."""

    gang: Gang
    entries: list[GangEntry] = field(default_factory=list)
    members: list[Pod] = field(default_factory=list)
    #: By gang: how many must be decided at least.
    needs: dict[str, int] = field(default_factory=dict)
    #: Candidates that were given up (rule 5); whether one is now.
    given_up: int = 0
    stuck: bool = False
    #: ``None``: not planned in this trial.
    plan: _Plan | None = None

    def begin(self) -> None:
        """Begin a trial, without the candidate at which the last one was ended."""
        self.given_up += self.stuck
        self.stuck, self.plan = False, None

    def follow(self, plan: _Plan) -> _Plan:
        """Have a plan for this trial."""
        self.plan = plan
        return plan

    def give_up(self) -> None:
        """End the trial at the candidate."""
        self.stuck = True

    @property
    def need(self) -> int:
        """The least number of members that is worth a place."""
        return max(1, sum(self.needs.values()))

    def first(self, number: int) -> list[Pod]:
        """So many members: each gang's minimum before others, in their order."""
        left, wanted = dict(self.needs), []
        for pod in self.members:
            key = gang_key(pod)
            left[key] = left.get(key, 0) - 1
            wanted.append(left[key] >= 0)
        order = sorted(range(len(wanted)), key=lambda place: not wanted[place])[:number]
        return [self.members[place] for place in sorted(order)]


class Gathering:
    """The members of one group that are gathered."""

    def __init__(self, core: GangCore, book: GangBook, tree: NetworkTree) -> None:
        self._core, self._book, self._tree = core, book, tree
        self._bundles: dict[tuple[GatherLayer, ...], _Bundle] = {}

    @classmethod
    def of(cls, held: HeldRoom, network: ClusterNetwork, group: GangGroup) -> Gathering | None:
        """Where the members of a group go that are gathered; ``None``: none is."""
        gathers = any(entry.gang is not None and entry.gang.gathers for entry in group.entries)
        tree = network.tree(held.core.pod_cache.columns) if gathers else None
        return None if tree is None else cls(held.core, held.book, tree)

    def attempt(
        self, trials: GroupTrials, group: GangGroup, members: list[Pod], needs: Mapping[str, int]
    ) -> GroupTrial:
        """Decide the members, each at its place; ``needs``: by gang."""
        tried = [pod for pod in members if not self._core.why_never(pod)]
        bundles = _bundles(group, tried, needs).items()
        self._bundles = dict(
            sorted(bundles, key=lambda item: -must_level(item[1].gang, self._tree))
        )
        gathered = [pod for bundle in self._bundles.values() for pod in bundle.members]
        keys = {pod.key for pod in gathered}
        ordered = gathered + [pod for pod in members if pod.key not in keys]
        while True:
            for bundle in self._bundles.values():
                bundle.begin()
            trial = trials.decide(ordered)
            if not any(bundle.stuck for bundle in self._bundles.values()):
                return trial
            trials.take_back(trial)

    def row(self, pod: Pod) -> int | FailedMember | None:
        """The row of a member, or why it has none; ``None``: it is not gathered."""
        bundle = self._bundle(pod)
        if bundle is None:
            return None
        plan = bundle.plan or bundle.follow(self._plan(bundle))
        row = plan.rows.get(pod.key)
        if row is None:
            return replace(plan.failed or FailedMember(pod, ""), pod=pod)
        ahead = plan.ahead.setdefault(pod.pod_class, deque(plan.order)) or deque((row,))
        refused = None
        while ahead:
            refused = verdict(self._core, pod, ahead[0])
            if refused is None:
                return ahead[0]
            ahead.popleft()
        return self.give_up(pod, ", ".join(refused.reasons if refused is not None else ()))

    def give_up(self, pod: Pod, why: str) -> FailedMember:
        """End the trial: a member does not fit where it should go (rule 5)."""
        bundle = self._bundle(pod)
        if bundle is not None:
            bundle.give_up()
        return FailedMember(pod, why, error=True)

    def _bundle(self, pod: Pod) -> _Bundle | None:
        entry = self._book.of(pod)
        gang = entry.gang if entry is not None else None
        return self._bundles.get(gang.gather) if gang is not None else None

    # Planning.

    def _plan(self, bundle: _Bundle) -> _Plan:
        """The row of each member that has one, and what the others hear."""
        tree, level = self._tree, must_level(bundle.gang, self._tree)
        own, near, strays = self._there(bundle)
        members = tree.sums(own)
        start = np.arange(len(tree.levels[level].names))
        if level and (own.any() or strays):
            start = np.flatnonzero(members[level])
            if strays or start.size > 1:
                names = ", ".join(tree.spell(level, int(place)) for place in start)
                message = f"more than 1 domain found for pod group: {names}"
                message = f"no topology domain found for pod {strays[0]}" if strays else message
                return _Plan(failed=FailedMember(bundle.members[0], message, error=True))
        slots = NodeSlots(self._core, bundle.members, tree.rows)
        multiples = _multiples(bundle.gang, tree)
        offers = TreeOffers(
            tree,
            tree.rounded(slots.counts, members, multiples),
            tree.sums(near),
            tree.sums(slots.scores),
            members,
            multiples,
        )
        options = _options(offers, level, start, bundle)
        place, shares = next(itertools.islice(options, bundle.given_up, None), ((0, 0), []))
        order: list[int] = []
        if shares and not multiples and len({pod.pod_class for pod in bundle.members}) > 1:
            whole = offers.distribution(place, int(offers.slots[place[0]][place[1]]))
            order = [row for row, _ in whole]
        rows = [row for row, count in shares for _ in range(count)]
        chosen, failed = bundle.first(len(rows)), None
        if len(chosen) < len(bundle.members):
            message, by = slots.shortage()
            text = _shortage(offers, level, start, bundle, message)
            failed = FailedMember(bundle.members[0], text, by=by)
        by_member = {pod.key: row for pod, row in zip(chosen, rows, strict=True)}
        return _Plan(by_member, failed, order)

    def _there(self, bundle: _Bundle) -> tuple[Ints, Ints, list[str]]:
        """By node of the tree: members of the bundle, all that attract it; members elsewhere."""
        own, near = (np.zeros(self._tree.rows.size, np.int64) for _ in range(2))
        strays: list[str] = []
        selectors = {pod.gang.selector for pod in bundle.members if pod.gang is not None} - {""}
        mine = {entry.key for entry in bundle.entries}
        for entry in self._book if selectors else bundle.entries:
            for key, pod in entry.children.items():
                row = row_of(self._core, pod)
                if row is None:
                    continue
                number = self._tree.numbers.get(row)
                equal = pod.gang is not None and pod.gang.selector in selectors
                if number is not None:
                    own[number] += entry.key in mine
                    near[number] += equal or entry.key in mine
                elif entry.key in mine:
                    strays.append(key)
        return own, near, sorted(strays)


def _bundles(
    group: GangGroup, members: Sequence[Pod], needs: Mapping[str, int]
) -> dict[tuple[GatherLayer, ...], _Bundle]:
    bundles: dict[tuple[GatherLayer, ...], _Bundle] = {}
    by_gang: dict[str, _Bundle] = {}
    for entry in group.entries:
        if entry.gang is not None and entry.gang.gathers:
            bundle = bundles.setdefault(entry.gang.gather, _Bundle(entry.gang))
            bundle.entries.append(entry)
            bundle.needs[entry.key] = max(0, needs.get(entry.key, 0))
            by_gang[entry.key] = bundle
    for pod in members:
        bundle_of = by_gang.get(gang_key(pod))
        if bundle_of is not None:
            bundle_of.members.append(pod)
    return {gather: bundle for gather, bundle in bundles.items() if bundle.members}


def _multiples(gang: Gang, tree: NetworkTree) -> dict[int, int]:
    levels = {tree.level(layer.layer): layer.multiple for layer in gang.gather}
    return {level: multiple for level, multiple in levels.items() if level >= 0 and multiple > 1}


def _options(
    offers: TreeOffers, level: int, start: Rows, bundle: _Bundle
) -> Iterator[tuple[tuple[int, int], list[Share]]]:
    """The candidates to try and their distributions, the best first (rule 4)."""
    wanted = len(bundle.members)
    for _ in range(2):
        for place in offers.candidates(start, level, wanted):
            shares = offers.distribution(place, wanted)
            if sum(count for _, count in shares) == wanted:
                yield place, shares
        # What the best place holds: with it, one distribution at least is of that size.
        parts = (offers.distribution((level, int(place)), wanted) for place in start)
        most = max((sum(count for _, count in shares) for shares in parts), default=0)
        if not bundle.need <= most < wanted:
            return
        wanted = most


def _shortage(offers: TreeOffers, level: int, start: Rows, bundle: _Bundle, nodes: str) -> str:
    """What a gang hears that no place holds; of many places those with the most slots."""
    slots, tree = offers.slots[level], offers.tree
    closest = sorted(start.tolist(), key=lambda place: (-int(slots[place]), place))[:_NAMED]
    places = ";".join(
        f"topology topologyNode {tree.spell(level, place)}: {slots[place]}"
        for place in sorted(closest)
    )
    more = start.size - len(closest)
    places += f" and {more} more" if more else ""
    text = f"no candidate topology nodes can accommodate job, desiredOfferSlot: {bundle.need}"
    text += f", {places or 'no node has a label of each layer'}, {nodes}"
    multiples = sorted(
        f"{layer.layer}={layer.multiple}" for layer in bundle.gang.gather if layer.multiple > 1
    )
    return text + (f"; podCountMultiple constraints: {', '.join(multiples)}" if multiples else "")
