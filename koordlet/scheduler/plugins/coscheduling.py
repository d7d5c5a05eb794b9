"""Plugins that bring gangs into a profile: Coscheduling (the peers' forms), GangScheduling.

Covers: their arguments, the gate before the queue. Does not cover: gangs (``scheduler.gangs``): a
profile without the plugin of a form refuses the pods of that form by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

from koordlet.kubeapi.pod_groups import MatchPolicy
from koordlet.model import moment
from koordlet.model.record import dataclass
from koordlet.scheduler.cluster.events import ActionType
from koordlet.scheduler.framework import Plugin
from koordlet.scheduler.objects import wire
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.objects.wire import BadObjectError, Body

_WAIT = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CoschedulingArguments:
    """What both peers' arguments of ``Coscheduling`` say."""

    wait_seconds: float = _WAIT
    match_policy: MatchPolicy = MatchPolicy.ONCE_SATISFIED
    preempts: bool = True
    #: Whether members are gathered in the cluster's network, where it is described.
    gathers: bool = True
    #: Of any resource of the cluster, what members of non-strict gangs that wait may hold.
    hold_share: float = 0.5
    #: Of the minimum of a strict gang, what it may lack while its decided members wait.
    reject_share: float = 0.0
    #: Seconds in which a group that failed is not tried.
    backoff_seconds: float = 0.0
    warnings: tuple[str, ...] = field(default=())


_KNOWN = frozenset(
    {
        "apiVersion", "kind", "defaultTimeout", "controllerWorkers", "enablePreemption",
        "awareNetworkTopology", "defaultMatchPolicy", "skipCheckScheduleCycle",
        "permitWaitingTimeSeconds", "podGroupBackoffSeconds", "podGroupRejectPercentage",
        "nonStrictHoldShare",
    }
)  # fmt: skip


#: Arguments that are read and change nothing here, and why; at these values nobody misses them.
_NO_EFFECT: Mapping[str, tuple[tuple[object, ...], str]] = {
    "controllerWorkers": ((0, 1), "one writer is enough"),
    "skipCheckScheduleCycle": ((False,), "there are no cycles of gangs to check"),
}


def arguments(args: Body) -> CoschedulingArguments:
    """Arguments as they are; ``BadObjectError`` names the one that cannot be used."""
    seconds = float(wire.integer(args, "permitWaitingTimeSeconds"))
    if spelled := wire.text(args, "defaultTimeout"):
        try:
            seconds = moment.duration(spelled)
        except ValueError as error:
            raise BadObjectError(f"Coscheduling: defaultTimeout: {error}") from error
    spelled = wire.text(args, "defaultMatchPolicy") or MatchPolicy.ONCE_SATISFIED.value
    policy = next((policy for policy in MatchPolicy if policy.value == spelled), None)
    if policy is None:
        words = ", ".join(policy.value for policy in MatchPolicy)
        raise BadObjectError(f"Coscheduling: defaultMatchPolicy: expected one of {words}")
    share = args.get("nonStrictHoldShare", 0.5)
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
        raise BadObjectError("Coscheduling: nonStrictHoldShare: expected a number from 0 to 1")
    percentage = wire.integer(args, "podGroupRejectPercentage")
    if not 0 <= percentage <= 100:
        raise BadObjectError("Coscheduling: podGroupRejectPercentage: expected 0 to 100")
    warnings = [f"Coscheduling: {key!r} is unknown and ignored" for key in args.keys() - _KNOWN]
    warnings += [
        f"Coscheduling: {key} has no effect: {why}"
        for key, (harmless, why) in _NO_EFFECT.items()
        if key in args and args[key] is not None and args[key] not in harmless
    ]
    return CoschedulingArguments(
        wait_seconds=seconds if seconds > 0 else _WAIT,
        match_policy=policy,
        preempts=wire.flag(args, "enablePreemption", default=True),
        gathers=wire.flag(args, "awareNetworkTopology", default=True),
        hold_share=float(share),
        reject_share=percentage / 100,
        backoff_seconds=float(max(0, wire.integer(args, "podGroupBackoffSeconds"))),
        warnings=tuple(sorted(warnings)),
    )


class _Gate(Plugin):
    """Keeps members before the queue while their group lacks somebody."""

    #: Members that were decided and taken back wait for the member that failed, not for events.
    listens = ActionType(0)

    def __init__(self, args: Mapping[str, Any]) -> None:
        super().__init__(args)
        self._refusal: Callable[[Pod], str] | None = None

    def attach(self, refusal: Callable[[Pod], str]) -> None:
        """Ask this why a member must not be tried yet; empty: it may."""
        self._refusal = refusal


class Coscheduling(_Gate):
    """Gangs by label and annotation, with or without a PodGroup of the peers' kind."""

    name = "Coscheduling"

    def __init__(self, args: Mapping[str, Any]) -> None:
        super().__init__(args)
        self.arguments = arguments(args)

    @property
    def warnings(self) -> Sequence[str]:
        return self.arguments.warnings

    def pre_enqueue(self, pod: Pod) -> str:
        own = pod.gang is not None and not pod.gang.native
        return self._refusal(pod) if own and self._refusal is not None else ""


class GangScheduling(_Gate):
    """Gangs by ``spec.schedulingGroup``, with a PodGroup of Kubernetes' own kind."""

    name = "GangScheduling"

    def pre_enqueue(self, pod: Pod) -> str:
        own = pod.gang is not None and pod.gang.native
        return self._refusal(pod) if own and self._refusal is not None else ""
