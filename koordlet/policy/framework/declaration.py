"""What a policy declares of itself, in its own file: ``POLICY = declaration.Policy(...)``.

Covers: the declaration, a state to and from its checkpoint.
Does not cover: the order of the policies (``registry``), running them (``chain``).

A declaration says whom its policy protects, and how. Only what protects nobody and merely makes
better use of the machine may be taken back by the guard (``guard``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from koordlet.history import series
from koordlet.model import adjustment, decision, ledger, plan, pod, snapshot
from koordlet.model.record import dataclass
from koordlet.policy.framework import saved_state

SettingsT = TypeVar("SettingsT")
StateT = TypeVar("StateT")

_STATELESS: Any = decision.Stateless()


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy(Generic[SettingsT, StateT]):
    """One policy. Settings and state are opaque to all other code."""

    stem: str
    summary: str
    #: Whom it protects, as a sentence says it; empty: it only optimises.
    protects: str = ""
    decide: Callable[
        [snapshot.Snapshot, series.History, SettingsT, StateT], decision.Decision[StateT]
    ]
    #: Settings and state to start with.
    settings: SettingsT
    state: StateT = _STATELESS
    default_mode: plan.Mode = plan.Mode.ENFORCE
    #: The type of what its checkpoint holds, mostly that of the state. ``None``: what it knows is
    #: of this moment, is never saved, and a new process starts without it.
    kept: type[Any] | None = None
    #: Where a checkpoint holds less than the state: what of it, and the state that begins with it.
    keep: Callable[[StateT], Any] = lambda state: state
    wake: Callable[[Any], StateT] = lambda kept: kept
    #: Version of what is kept: a checkpoint of another one is discarded.
    schema: int = 1
    #: The claims that a state from a checkpoint stands for: they count while the policy fails
    #: before it has decided anything.
    recall: Callable[[StateT], tuple[ledger.Claim, ...]] | None = None
    #: What a container gets before it starts, of the snapshot with the ledger of this round, the
    #: settings, the state after it, the pod, the container's name. ``None``: this policy is not
    #: about single containers.
    admit: (
        Callable[[snapshot.Snapshot, SettingsT, StateT, pod.Pod, str], adjustment.Adjustment] | None
    ) = None
    #: It looks neither at the time nor at the history: while nothing else changes, its last
    #: decision stands, and it is not asked again.
    timeless: bool = False
    #: While one of its signals is met it chooses among workloads, by what they use of memory and
    #: processes at this moment.
    compares: bool = False

    def saved(self, state: StateT) -> Mapping[str, Any]:
        """The body of its checkpoint."""
        body: Mapping[str, Any] = saved_state.encode(self.keep(state))
        return body

    def revive(self, body: Mapping[str, object]) -> StateT:
        """The state from the body of a checkpoint; ``ValueError`` where it is none."""
        return self.wake(saved_state.decode(self.kept, body))


#: A policy of whatever settings and state.
Declared = Policy[Any, Any]
