"""exclusive_cpus: the ledger of exclusive CPUs.

Covers: CPUs that a scheduler, the kubelet or the operator gave; choosing them for a workload that
asks for a number; what happens to sets that clash.
Does not cover: reserved CPUs (``reserved_cpus``), pools and cpusets (``shared_pools``), how CPUs
are chosen (``allocation``), what a workload asks for (``requests``).

Order of grants; an earlier grant is never taken for a later one:
* CPUs that the kubelet's static policy assigned: they are in force, and the kubelet owns the files
* CPUs of prepared resource claims that have them
* named sets that were granted before and are unchanged
* other named sets
* CPUs of an Available reservation on this node: kept for its owners, from best-effort work as well
* sets that koordlet chose before and that are complete: they stay
* chosen sets that lost CPUs, or that grow or shrink
* requests for a number of CPUs that have none yet
* CPUs of resource claims that are being prepared
Within a turn: LSE before LSR, then higher priority, then key, then UID.

Rules:
1. A named set is granted or refused as a whole. Reasons to refuse it: an untrusted annotation
   (``requests``), reserved CPUs, CPUs of an earlier grant, no online CPU, or no CPU left for the
   shared pools. The workload then runs in its pool, and a condition names it.
2. Lost CPUs of a chosen set (offline, reserved, granted to another workload) are replaced by CPUs
   near the remaining ones; otherwise the workload keeps the rest, and a condition says so.
3. A workload keeps its offline CPUs: they count again when they come back.
4. Chosen sets do not move, unless ``repack`` finds a layout that scatters them less.
5. A workload that no source lists holds no CPUs. Stale workloads are still listed and keep theirs.
6. A resource claim holds its CPUs from its preparation to its end, whether its pod runs or not. A
   pod whose container uses such a claim is given no other CPUs of its own.

* Formula: none: a set that was named is granted as a whole, a number is chosen by layout
* Writes: nothing itself: `shared_pools` writes the sets
* See: `koordlet explain cpu N`, `koordlet explain pod NS/NAME`; **E** on the console's map
* Off: nobody holds CPUs alone: those workloads run in their pool
* More: cpu.md
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from koordlet.history import series
from koordlet.model import (
    cpuset,
    decision,
    ledger,
    qos,
    reservation,
    snapshot,
    strategy_field,
)
from koordlet.model import pod as pods
from koordlet.model.record import dataclass
from koordlet.policy.cpu import allocation, claimed_cpus, grants, holdings, requests
from koordlet.policy.cpu import repack as cpu_repack
from koordlet.policy.cpu.holdings import Origin, State
from koordlet.policy.framework import declaration

STEM = "exclusive_cpus"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Exclusive CPUs of single workloads."""

    #: Choose exclusive CPUs for workloads that request a number of them and have no CPUs from a
    #: scheduler.
    choose: bool = strategy_field.setting(default=True)
    #: Move exclusive cpusets that koordlet chose when that reduces fragmentation; `koordlet plan
    #: --defragment` shows the moves.
    repack: bool = strategy_field.setting(default=False)
    #: Trust the `resource-status` annotation whatever the pod's class, priority and request.
    #: Whoever may write pods can then take the node's CPUs.
    trust_annotations: bool = strategy_field.setting(default=False)
    #: Highest number of exclusive CPUs; null sets no bound.
    max_cpus: int | None = strategy_field.bound(0)


def decide(
    now: snapshot.Snapshot, _past: series.History, settings: Settings, state: State
) -> decision.Decision[State]:
    """Decide which workload holds which CPUs."""
    giving = _Giving(now, settings, state)
    giving.run()
    giving.why |= {claim.holder: claim.reason for claim in giving.claims}
    return giving.decided(
        State(holdings=tuple(sorted(giving.holdings, key=lambda h: (h.holder, h.uid)))),
        claims=tuple(giving.claims),
        lasting=not giving.for_a_minute,
    )


def turn(pod: pods.Pod) -> tuple[bool, int, str, str]:
    """Sort key within a turn."""
    return (pod.qos is not qos.Qos.LSE, -(pod.priority or 0), pod.key, pod.uid)


class _Giving(grants.Grants):
    """Builds one decision."""

    def __init__(self, now: snapshot.Snapshot, settings: Settings, before: State) -> None:
        super().__init__(STEM, now, before, most=settings.max_cpus)
        self.settings = settings
        self._repacked: Mapping[str, cpuset.CPUSet] = {}
        #: CPUs are held by the clock: for a pod that is on its way.
        self.for_a_minute = False

    def run(self) -> None:
        """All turns."""
        pods = sorted(self.now.pods, key=turn)
        kubelet = [pod for pod in pods if pod.kubelet_owned and pod.cpus]
        for pod in kubelet:
            self._hold(pod, pod.cpus or cpuset.CPUSet(), Origin.KUBELET, "the kubelet's policy")
        claims = [claim for claim in self.now.claims if claim.cpus]
        known = [claim for claim in claims if self.before.of(claim.uid, Origin.CLAIMED)]
        claimed_cpus.grant(self, known)
        refused = self._disbelieved(pods)
        self._strangers({pod.uid for pod in pods} - refused)
        ours = [
            pod
            for pod in pods
            if not pod.kubelet_owned and pod.uid not in refused and requests.may_hold(pod)
        ]
        if claims:
            users = {pod.uid for claim in claims for pod, _ in claimed_cpus.users(self.now, claim)}
            ours = [pod for pod in ours if pod.uid not in users]
        named = [pod for pod in ours if pod.cpus is not None]
        for pod in sorted(named, key=lambda pod: not self._known(pod)):
            self._named(pod)
        there = {pod.uid for pod in pods} if self.now.reservations else set()
        for waiting in self.now.reservations:
            self._reserved(waiting, there)
        asking = [(pod, request) for pod in ours if (request := self._asked(pod)) is not None]
        if self.settings.repack:
            self._repack(asking)
        # Who has all of its CPUs loses none of them to somebody who lost some.
        for pod, request in sorted(asking, key=lambda pair: self._state(*pair)):
            self._chosen(pod, request)
        claimed_cpus.grant(self, [claim for claim in claims if claim not in known])

    # What others decided -------------------------------------------------------------------------

    def _disbelieved(self, pods: Sequence[pods.Pod]) -> set[str]:
        """UIDs of pods whose CPU annotation is refused; that of best-effort work only narrows."""
        asking = () if self.settings.trust_annotations else pods
        refused = {pod.uid: requests.disbelieved(pod, self.now) for pod in asking}
        for pod in asking:
            if (why := refused[pod.uid]) and pod.qos is not qos.Qos.BE:
                fix = f"it runs in the LS pool; policies.{STEM}.trustAnnotations would allow it"
                self.say(
                    "ExclusiveCPUsRefused",
                    f"CPUs {pod.cpus} of its annotation: {why}; {fix}",
                    pod.key,
                )
        return {uid for uid, why in refused.items() if why}

    def _strangers(self, listed: set[str]) -> None:
        """Claim CPUs that the kubelet holds for pods that no source lists."""
        state = self.now.kubelet.cpu if self.now.kubelet is not None else None
        if state is None or state.policy != "static":
            return
        for uid in sorted(state.entries.keys() - listed):
            cpus = (state.of_pod(uid) or cpuset.CPUSet()) & self.online
            if cpus:
                self.record(
                    ledger.Claim(
                        owner=ledger.Owner.LSR,
                        cpus=cpus,
                        holder=f"kubelet/{uid}",
                        policy=STEM,
                        reason="the kubelet holds them for a pod that no source lists",
                        uid=uid,
                        kubelet=True,
                    )
                )

    def _named(self, pod: pods.Pod) -> None:
        listed = pod.cpus or cpuset.CPUSet()
        problem = self._refusal(listed & self.online)
        if problem:
            self.say(
                "ExclusiveCPUsRefused",
                f"CPUs {pod.cpus}: {problem}; it runs in the LS pool",
                pod.key,
            )
            return
        missing = listed - self.online
        if missing:
            self.say("ExclusiveCPUsPartial", f"CPUs {missing} of {listed} are not online", pod.key)
        self._hold(pod, listed, Origin.NAMED, f"named by {pod.source}")

    def _reserved(self, bound: reservation.Reservation, there: set[str]) -> None:
        """What of a reservation's CPUs no owner has yet; a unit's reservation is a workload.

        Used up is not handed over: until its owner is here, nobody else gets in between.
        """
        arriving = bound.arriving(self.now.wall, there)
        self.for_a_minute |= arriving
        held = bound.holds or arriving
        if not held or bound.match or not bound.cpus:
            return
        left = (bound.cpus & self.usable) - self.taken
        holder = f"reservation/{bound.name}"
        problem = self.too_much(left) if left else ""
        if problem:
            self.say("ReservationRefused", f"CPUs {bound.cpus}: {problem}", holder)
        elif left:
            self.record(
                ledger.Claim(
                    owner=ledger.Owner.RESERVATION,
                    cpus=left,
                    holder=holder,
                    policy=STEM,
                    reason=f"held for the owners of reservation {bound.name}",
                )
            )

    def _refusal(self, wanted: cpuset.CPUSet) -> str:
        if not wanted:
            return "none of them is online"
        if outside := wanted - self.now.allowed:
            return f"{outside} are outside of the CPUs of the cgroup tree"
        if wanted & self.reserved:
            return f"{wanted & self.reserved} are reserved"
        if wanted & self.taken:
            return f"{wanted & self.taken} belong to another exclusive workload"
        return self.too_much(wanted)

    # What is decided here ------------------------------------------------------------------------

    def _asked(self, pod: pods.Pod) -> allocation.Request | None:
        """The request of a workload without named CPUs; a condition where it is contradictory."""
        if pod.cpus is not None:
            return None
        asked = requests.ask(pod, self.now.node.labels)
        if isinstance(asked, requests.Problem):
            self.say("ExclusiveCPUsUndecided", f"{asked.why}; it runs in the LS pool", pod.key)
            return None
        if asked is not None and not self.settings.choose:
            message = f"no source names its {asked.cpus.count} CPUs; it runs in the LS pool"
            self.say("ExclusiveCPUsUndecided", message, pod.key)
            return None
        return asked

    def _chosen(self, pod: pods.Pod, request: allocation.Request) -> None:
        before = self.before.of(pod.uid, Origin.CHOSEN)
        chosen = before.cpus if before is not None else cpuset.CPUSet()
        listed = self._repacked.get(pod.uid, chosen)
        there = (listed & self.usable) - self.taken
        whole = there == listed and len(there) == request.cpus.count
        if there and whole and not self.too_much(there):
            self._hold(pod, there, Origin.CHOSEN, self._why(request))
            return
        answer = self.allocate(replace(request, preferred=there))
        why = answer.why if isinstance(answer, allocation.Refusal) else ""
        if isinstance(answer, allocation.Grant):
            why = self.too_much(answer.cpus)
            if not why:
                self._hold(pod, answer.cpus, Origin.CHOSEN, self._why(request))
                return
        count = request.cpus.count
        if there and len(there) < count and not self.too_much(there):
            # It runs there: to lose the rest as well would be worse than to have too few.
            self.say("ExclusiveCPUsPartial", f"has {len(there)} of {count} CPUs: {why}", pod.key)
            back = listed - self.taken - self.reserved
            self._hold(pod, back, Origin.CHOSEN, f"{self._why(request)}; some are missing")
            return
        self.say(
            "ExclusiveCPUsRefused", f"requests {count} CPUs: {why}; it runs in the LS pool", pod.key
        )

    def _repack(self, asking: Sequence[tuple[pods.Pod, allocation.Request]]) -> None:
        """Those that have all of their CPUs, as if they had been chosen together."""
        placed: list[cpu_repack.Placed] = []
        for pod, request in asking:
            before = self.before.of(pod.uid, Origin.CHOSEN)
            cpus = before.cpus if before is not None else cpuset.CPUSet()
            if len(cpus & self.usable - self.taken) == request.cpus.count:
                placed.append(
                    cpu_repack.Placed(uid=pod.uid, key=pod.key, request=request, cpus=cpus)
                )
        node = self.node()
        avoided = node.reserved | (self.isolated - cpuset.union(pod.cpus for pod in placed))
        better = cpu_repack.better(node.shape, placed, reserved=avoided, others=node.holdings)
        self._repacked = better or {}

    def _why(self, request: allocation.Request) -> str:
        wanted = request.cpus
        must = "required" if wanted.required else "preferred"
        return f"chosen here: {wanted.count} CPUs, {wanted.bind.value} {must}"

    # Rows ----------------------------------------------------------------------------------------

    def _known(self, pod: pods.Pod) -> bool:
        """Whether the workload held exactly this set before."""
        row = self.before.of(pod.uid, Origin.NAMED)
        return row is not None and row.cpus == pod.cpus

    def _state(self, pod: pods.Pod, request: allocation.Request) -> int:
        """0: its chosen set is whole, 1: it is not, 2: it has none."""
        before = self.before.of(pod.uid, Origin.CHOSEN)
        if before is None:
            return 2
        cpus = self._repacked.get(pod.uid) or before.cpus
        whole = cpus <= self.usable - self.taken and len(cpus) == request.cpus.count
        return 0 if whole else 1

    def _hold(self, pod: pods.Pod, listed: cpuset.CPUSet, origin: Origin, why: str) -> None:
        owner = ledger.Owner.LSE if pod.qos is qos.Qos.LSE else ledger.Owner.LSR
        reason = f"exclusive CPUs of {owner.value} {pod.key} ({why})"
        who = (pod.uid, pod.key)
        exclusive = requests.exclusive(pod)
        self.keep(owner, who, listed, origin=origin, reason=reason, exclusive=exclusive)


POLICY = declaration.Policy(
    stem=STEM,
    summary="exclusive CPUs: which workload holds which, why, since when",
    protects="it gives exclusive CPUs to one workload each",
    decide=decide,
    settings=Settings(),
    state=holdings.State(),
    kept=holdings.State,
    recall=holdings.recall,
    timeless=True,
)
