"""One round: every strategy of every profile proposes, limits and evictor answer.

Covers: the order of strategies, checks before each eviction, what a failing strategy costs.
Does not cover: evicting, and what bounds evictions over time: whoever plays a round asks it, and
answers each proposal with what keeps the pod.

Rules:
1. Per profile first all ``deschedule`` strategies in their order, then all ``balance`` ones.
2. A round is a generator: it yields proposals and is sent the answers. What it decides is a
   function of the cluster's state and of these.
3. A strategy that fails ends itself; the others go on.
4. What a strategy only shows, beside others that act, counts until it ends: it takes nobody's
   place in the limits of the round or on a node.
5. With upstream's configuration nothing is done where fewer than two nodes are ready.
6. The limits of the round are asked first, then what bounds evictions over time, and where a pod
   would land last: that costs most by far.
7. A bound of the whole round or cluster ends the strategy, with a note: it would refuse the rest.
8. Pods that are moved alive count in the limits of each round until they are gone.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import field, replace
from typing import Protocol

from koordlet.model.record import dataclass
from koordlet.scheduler.descheduling.evictability import Evictability
from koordlet.scheduler.descheduling.evictor_settings import RESERVATION_FIRST, EvictorSettings
from koordlet.scheduler.descheduling.landing import Landing
from koordlet.scheduler.descheduling.limits import EvictionAnswer, RoundCounts, RoundLimits
from koordlet.scheduler.descheduling.state import ClusterState
from koordlet.scheduler.descheduling.strategy_run import StrategyRun
from koordlet.scheduler.descheduling.traits import Resident
from koordlet.scheduler.disruption.answers import CLUSTER_WIDE, Refusal

FEW_NODES = "the cluster size is 0 or 1"


@dataclass(frozen=True, slots=True)
class Intent:
    """What a strategy wants: this pod gone."""

    resident: Resident
    reason: str
    #: The row where its replacement is expected, where the strategy has chosen one.
    target: int = -1
    #: The strategy only shows what it would do.
    shadow: bool = False
    #: Its node is cordoned before it goes, and no longer where it stays.
    cordon: bool = False
    #: It stays, and gets this deletion cost; ``None``: it is to go.
    deletion_cost: int | None = None
    #: For so long its workload avoids the node that serves it badly; 0: it may come back.
    avoid_seconds: float = 0.0
    #: Its workload avoids the node, and these that have ended there are removed; ``None``: it is to
    #: go itself.
    removes: tuple[Resident, ...] | None = None

    @property
    def stays(self) -> bool:
        """Whether nobody is to go by it."""
        return self.deletion_cost is not None or self.removes is not None


Intents = Generator[Intent, EvictionAnswer, None]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvictionProposal:
    """An intent that passed the checks: whoever plays the round says what keeps the pod."""

    resident: Resident
    reason: str
    strategy: str
    profile: str
    node: str
    #: The node where its replacement is expected; empty where nobody knows.
    target: str
    evictor: EvictorSettings
    shadow: bool = False
    cordon: bool = False
    deletion_cost: int | None = None
    avoid_seconds: float = 0.0
    removes: tuple[Resident, ...] | None = None
    #: Nobody goes by it.
    stays: bool = False


@dataclass(frozen=True, slots=True)
class Decision:
    """A proposal and what came of it."""

    proposal: EvictionProposal
    answer: EvictionAnswer
    #: What keeps the pod, where it is no limit of the round.
    refusal: Refusal | None = None

    @property
    def why(self) -> str:
        """Why the pod stays, reason first."""
        refusal = self.refusal
        return self.answer.value if refusal is None else f"{refusal.reason}: {refusal.message}"


@dataclass(slots=True)
class RoundResult:
    """What a round did, and why it did no more."""

    decisions: list[Decision] = field(default_factory=list)
    #: Of these the ones that were refused before they were proposed.
    unproposed: list[Decision] = field(default_factory=list)
    #: In the order in which they ran.
    runs: list[StrategyRun] = field(default_factory=list)
    #: Pods that got another deletion cost.
    ranked: list[EvictionProposal] = field(default_factory=list)
    #: Pods whose workload is to avoid their node though nobody goes.
    avoided: list[EvictionProposal] = field(default_factory=list)
    #: Sentences, by profile and strategy.
    notes: list[tuple[str, str, str]] = field(default_factory=list)
    #: Strategies that failed: profile, strategy, error.
    failures: list[tuple[str, str, str]] = field(default_factory=list)

    @property
    def evicted(self) -> list[EvictionProposal]:
        """The pods that go."""
        return [decision.proposal for decision in self.decisions if decision.answer.evicted]


class Scene:
    """What a strategy sees of the cluster."""

    def __init__(
        self,
        state: ClusterState,
        rows: list[int],
        evictor: EvictorSettings,
        landing: Landing,
        note: Callable[[str], None],
    ) -> None:
        self.state, self.rows, self.landing = state, rows, landing
        self.judge = Evictability(evictor, state)
        self.note = note
        #: Nodes that the strategy wants relieved.
        self.sources = 0

    def relieve(self, sources: int) -> None:
        """The strategy wants so many more nodes relieved."""
        self.sources += sources

    def evictable(
        self,
        row: int,
        wanted: Callable[[Resident], bool] = lambda _: True,
        *,
        ended: bool = False,
    ) -> list[Resident]:
        """The pods of a node that a strategy wants and the evictor lets go."""
        allows = self.judge.allows
        return [
            resident
            for resident in self.state.residents(row, ended=ended)
            if wanted(resident) and allows(resident)
        ]


class DeschedulingStrategy(Protocol):
    """Which pods should leave."""

    name: str

    def intents(self, scene: Scene) -> Intents:
        """Yield the pods in order; each is answered before the next is chosen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundProfile:
    """A profile with its strategies made."""

    name: str
    strategies: Sequence[DeschedulingStrategy]
    evictor: EvictorSettings
    rows: Callable[[ClusterState], list[int]]
    #: Upstream refuses clusters of one node.
    several: bool


class DeschedulingRound:
    """One round over one state of the cluster."""

    def __init__(
        self,
        profiles: Sequence[RoundProfile],
        limits: RoundLimits,
        state: ClusterState,
        *,
        waits: bool = False,
        asks: Callable[[EvictionProposal], Refusal | None] = lambda _: None,
        clock: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """``waits``: whoever answers lets the cluster change meanwhile.

        ``asks``: what bounds evictions over time, before a landing is searched (rule 6).
        """
        self.result = RoundResult()
        self._clock = clock
        self._profiles, self._state, self._waits, self._asks = profiles, state, waits, asks
        self._landing = Landing(state)
        self._counts = RoundCounts(limits)
        for pod in state.moving_alive():
            self._counts.count(pod)
        self._gone: set[str] = set()

    def proposals(self) -> Generator[EvictionProposal, Refusal | None, None]:
        """All proposals; each is answered with what keeps the pod, ``None`` where it goes."""
        try:
            for profile in self._profiles:
                yield from self._profile(profile)
        finally:
            self._landing.suspend()

    def play(self, answer: Callable[[EvictionProposal], Refusal | None]) -> RoundResult:
        """The whole round, where answers are there at once."""
        proposals = self.proposals()
        try:
            proposal = next(proposals)
            while True:
                proposal = proposals.send(answer(proposal))
        except StopIteration:
            return self.result

    def _profile(self, profile: RoundProfile) -> Generator[EvictionProposal, Refusal | None, None]:
        rows = profile.rows(self._state)
        if profile.several and len(rows) < 2:
            self.result.notes.append((profile.name, "", FEW_NODES))
            return
        for strategy in profile.strategies:

            def note(text: str, strategy: DeschedulingStrategy = strategy) -> None:
                self.result.notes.append((profile.name, strategy.name, text))

            scene = Scene(self._state, rows, profile.evictor, self._landing, note)
            run, began = StrategyRun(profile.name, strategy.name), self._clock()
            self.result.runs.append(run)
            before = len(self.result.decisions)
            try:
                yield from self._strategy(profile, strategy, scene, run)
            finally:
                run.end(self._clock() - began, scene.sources)
            if not profile.evictor.dry_run:
                self._forget(self.result.decisions[before:])

    def _forget(self, decisions: Sequence[Decision]) -> None:
        """Take back what a strategy only shows (rule 4)."""
        shown = [
            decision.proposal.resident.pod
            for decision in decisions
            if decision.answer.evicted and decision.proposal.shadow
        ]
        for pod in shown:
            self._gone.discard(pod.uid)
            self._counts.count(pod, -1)
        self._landing.take_back(len(shown))

    def _strategy(
        self,
        profile: RoundProfile,
        strategy: DeschedulingStrategy,
        scene: Scene,
        run: StrategyRun,
    ) -> Generator[EvictionProposal, Refusal | None, None]:
        intents = strategy.intents(scene)
        answer: EvictionAnswer | None = None
        while answer is None or not answer.ends:
            try:
                intent = next(intents) if answer is None else intents.send(answer)
            except StopIteration:
                return
            except Exception as error:  # noqa: BLE001 -- rule 3: others' strategies go on
                failure = f"{type(error).__name__}: {error}"
                self.result.failures.append((profile.name, strategy.name, failure))
                return
            answer = yield from self._answer(profile, strategy, scene, intent)
            run.answered(answer)
        intents.close()
        scene.note(f"{answer.value}: what else it wants was not looked at")

    def _answer(
        self, profile: RoundProfile, strategy: DeschedulingStrategy, scene: Scene, intent: Intent
    ) -> Generator[EvictionProposal, Refusal | None, EvictionAnswer]:
        resident, target = intent.resident, intent.target
        if resident.pod.uid in self._gone:
            return EvictionAnswer.REFUSED
        if not scene.judge.admits_namespace(resident):
            return EvictionAnswer.UNFIT
        proposal = EvictionProposal(
            resident=resident,
            reason=intent.reason,
            strategy=strategy.name,
            profile=profile.name,
            node=resident.pod.node,
            target=self._name(target),
            evictor=profile.evictor,
            shadow=intent.shadow or profile.evictor.dry_run,
            cordon=intent.cordon,
            deletion_cost=intent.deletion_cost,
            avoid_seconds=intent.avoid_seconds,
            removes=intent.removes,
            stays=intent.stays,
        )
        if not intent.stays:
            limited = self._limit(proposal)
            if limited is not None:
                return limited
            if target < 0 and checks_fit(profile.evictor):
                target = self._landing_of(profile.evictor, resident)
                if target < 0:
                    return EvictionAnswer.UNFIT
                proposal = replace(proposal, target=self._name(target))
        refusal = yield from self._propose(proposal)
        answer = EvictionAnswer.EVICTED if refusal is None else EvictionAnswer.REFUSED
        if intent.stays and refusal is None:
            kept = self.result.ranked if intent.removes is None else self.result.avoided
            kept.append(proposal)
            return answer
        self.result.decisions.append(Decision(proposal, answer, refusal))
        if refusal is None:
            self._gone.add(resident.pod.uid)
            self._counts.count(resident.pod)
            self._landing.depart(resident, target)
        return answer

    def _limit(self, proposal: EvictionProposal) -> EvictionAnswer | None:
        """The limit that keeps a pod, whether it has another place or not (rule 6)."""
        limited = self._counts.refusal(proposal.resident.pod)
        if limited is not None:
            self.result.decisions.append(Decision(proposal, limited))
        elif (refusal := self._asks(proposal)) is not None:
            wide = refusal.reason in CLUSTER_WIDE
            limited = EvictionAnswer.CLUSTER_LIMIT if wide else EvictionAnswer.REFUSED
            decision = Decision(proposal, limited, refusal)
            self.result.decisions.append(decision)
            self.result.unproposed.append(decision)
        return limited

    def _name(self, row: int) -> str:
        return self._state.node(row).name if row >= 0 else ""

    def _propose(
        self, proposal: EvictionProposal
    ) -> Generator[EvictionProposal, Refusal | None, Refusal | None]:
        """What keeps a pod; meanwhile the cluster is shown as it is."""
        if self._waits:
            self._landing.suspend()
        refusal = yield proposal
        if self._waits:
            self._landing.resume()
        return refusal

    def _landing_of(self, evictor: EvictorSettings, resident: Resident) -> int:
        """The best node for the replacement of a pod, of those that the evictor looks at."""
        among = None
        if evictor.node_selector is not None:
            among = self._state.rows(evictor.node_selector)
        return self._landing.best(resident, among)


def checks_fit(evictor: EvictorSettings) -> bool:
    """Whether a pod goes only where it fits elsewhere: always where room is reserved first."""
    return evictor.node_fit or (evictor.migrates and evictor.migration.mode == RESERVATION_FIRST)


def per_node(rows: Sequence[int], chosen: Callable[[int], Iterator[Intent]]) -> Intents:
    """The intents of one node after the other; a node's limit ends that node."""
    for row in rows:
        for intent in chosen(row):
            answer = yield intent
            if answer is EvictionAnswer.NODE_LIMIT:
                break
