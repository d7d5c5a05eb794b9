"""The Kubernetes scheduling framework over columns: extension points, filters, scores.

Covers: filters and scores of one class of pods, their three kinds, verdicts, the points of a pod's
way from the queue to its node. Does not cover: running them (``view``, ``cycle``).

Three kinds decide what is kept between two pods of a class:

* ``STATIC`` looks at node objects only: computed once a generation of nodes.
* ``LOAD`` looks at a node and the pods on it: computed again for the rows that changed.
* ``CONTEXT`` looks at more than the node's own row: computed for each pod.

A score whose ``constant`` is ``None`` is *normalised*: its raw values are kept by the same kinds,
``final`` is computed for each pod over the nodes that passed all filters.
"""

from __future__ import annotations

import enum
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from koordlet.kubeapi import objects
from koordlet.model.record import dataclass
from koordlet.scheduler.cluster.columns import Columns
from koordlet.scheduler.cluster.events import ActionType, ClusterEvent
from koordlet.scheduler.cluster.vectors import Bools, Ints, Rows, compact
from koordlet.scheduler.objects.nodes import Node
from koordlet.scheduler.objects.pods import Pod, PodClass

MAX_SCORE = 100


class Kind(enum.IntEnum):
    """What a filter or a score depends on."""

    STATIC = 0
    LOAD = 1
    CONTEXT = 2


@dataclass(frozen=True, slots=True)
class Verdict:
    """Why a node is refused, and whether fewer pods on it would help."""

    reasons: tuple[str, ...]
    resolvable: bool
    #: Who says so; the view writes it.
    plugin: str = ""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why no node is feasible; ``verdicts`` is ``None`` where none was looked at."""

    message: str
    verdicts: dict[int, Verdict] | None
    #: The plugins that refused it anywhere.
    by: frozenset[str] = frozenset()


class RefusedError(Exception):
    """A pod is refused as a whole, before any node is looked at."""

    def __init__(self, reason: str, *, resolvable: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.resolvable = resolvable


class Filter:
    """The verdicts of one plugin for one class of pods."""

    kind: ClassVar[Kind] = Kind.STATIC
    #: Whether it says the same of a node whoever is on it.
    blind: ClassVar[bool] = False
    #: Whether ``allows`` costs next to nothing, also where all that it depends on is looked at.
    pointwise: bool = False
    #: By code, from 1 on.
    verdicts: Sequence[Verdict] = ()

    def codes(self, rows: Rows) -> Ints:
        """0 where a node passes, else a code that ``verdict`` can read."""
        raise NotImplementedError

    def verdict(self, code: int) -> Verdict:
        """The verdict of a code."""
        return self.verdicts[code - 1]

    def allowed(self, rows: Rows) -> Bools:
        """Which rows pass; overridden where that is faster than ``codes``."""
        allowed: Bools = self.codes(rows) == 0
        return allowed

    def among(self, passing: Bools, every: Rows) -> Bools:
        """Which of all nodes that pass so far pass here; overridden where the others matter."""
        return passing & self.allowed(every)

    def allows(self, row: int) -> bool:
        """Whether one node passes; a filter of kind ``LOAD`` says it without arrays."""
        return bool(self.allowed(np.array([row], np.intp))[0])


class ByNode(Filter):
    """A filter that asks about one node after the other; each verdict ever given gets a code."""

    kind = Kind.LOAD

    def __init__(self, columns: Columns, refuses: Callable[[Node, int], Verdict | None]) -> None:
        self._columns, self._refuses = columns, refuses
        self._given: list[Verdict] = []
        self.verdicts = self._given

    def refusal(self, row: int) -> Verdict | None:
        """Why a node is refused; ``None``: it passes."""
        node = self._columns.nodes[row]
        return None if node is None else self._refuses(node, row)

    def code(self, row: int) -> int:
        """0 where the node passes, else the code of its verdict."""
        verdict = self.refusal(row)
        if verdict is None:
            return 0
        if verdict not in self._given:
            self._given.append(verdict)
        return 1 + self._given.index(verdict)

    def codes(self, rows: Rows) -> Ints:
        return np.array([self.code(row) for row in rows.tolist()], np.int64)

    def allows(self, row: int) -> bool:
        return self.refusal(row) is None


class Score:
    """The scores of one plugin for one class of pods."""

    kind: ClassVar[Kind] = Kind.STATIC
    normalised: ClassVar[bool] = False

    def raw(self, rows: Rows) -> Ints:
        """Scores, or what ``final`` makes scores of."""
        raise NotImplementedError

    def one(self, row: int) -> int:
        """The same for one node; a score of kind ``LOAD`` says it without arrays."""
        return int(self.raw(np.array([row], np.intp))[0])

    def final(self, raw: Ints, rows: Rows) -> Ints:
        """Scores from 0 to 100 of the feasible nodes, from their raw values."""
        return raw

    def constant(self, raw: Ints) -> int | None:
        """The score of every node whatever the feasible set, or ``None``."""
        return None if raw.size == 0 or raw.any() else 0

    def late(self) -> Rows:
        """The rows that a sample of the nodes takes last; only of a normalised score."""
        return np.zeros(0, np.intp)


class StaticScore(Score):
    """A static score from one array."""

    def __init__(self, values: Ints) -> None:
        self._values = compact(values)

    def raw(self, rows: Rows) -> Ints:
        return self._values[rows].astype(np.int64)


class ScoreByNode(Score):
    """A score that asks about one node after the other."""

    kind = Kind.LOAD

    def __init__(self, columns: Columns, rates: Callable[[Node, int], int]) -> None:
        self._columns, self._rates = columns, rates

    def one(self, row: int) -> int:
        node = self._columns.nodes[row]
        return 0 if node is None else self._rates(node, row)

    def raw(self, rows: Rows) -> Ints:
        return np.array([self.one(row) for row in rows.tolist()], np.int64)


class ContextScore(Score):
    """A score that is computed for each pod alone: ``final`` says it."""

    kind = Kind.CONTEXT
    normalised = True

    def raw(self, rows: Rows) -> Ints:
        return np.broadcast_to(np.int64(0), rows.size)

    def constant(self, raw: Ints) -> int | None:
        return None


@dataclass(frozen=True, slots=True)
class Rescue:
    """The answer of a PostFilter: a message, and the node where the plugin made room."""

    message: str = ""
    #: The node that it shall be tried on, because room has been made there.
    node: str = ""


class Plugin:
    """One plugin of a profile. Each point is optional; the default takes no part."""

    name: ClassVar[str] = ""
    #: What may make a difference to a class that this plugin has refused.
    listens: ClassVar[ActionType] = ActionType.EVERYTHING

    def __init__(self, args: Mapping[str, Any]) -> None:
        self.args = args

    @property
    def warnings(self) -> Sequence[str]:
        """What of the arguments has no effect, in words for the operator."""
        return ()

    def meet(self, others: Iterable[Plugin]) -> None:
        """Learn which plugins the profile has; called once, before anything else."""

    @property
    def deciding(self) -> frozenset[str]:
        """Annotations of pods that the plugin reads; pods of one class have them in common."""
        return frozenset()

    def queue_key(self, pod: Pod) -> Any:
        """QueueSort: what pods are ordered by, the least first; time decides between equals."""
        return -pod.priority

    def pre_enqueue(self, pod: Pod) -> str:
        """Why a pod must not be tried yet; empty: it may."""
        return ""

    def refine(self, pod: Pod, pod_class: PodClass) -> PodClass:
        """The class that a pod is tried as: the one so far, or a variant for what the plugin knows.

        The first plugin gets the pod's own class, each other what the one before it has made.
        """
        return pod_class

    def hidden(self, pod_class: PodClass) -> Iterable[Pod]:
        """Placed pods that a class does not see; their amounts count all the same."""
        return ()

    def pre_filter(self, pod: Pod) -> str:
        """Why a pod is refused as a whole, before any node is looked at; empty: it is not.

        Less of something may help, but on no node in particular.
        """
        return ""

    def names(self, pod_class: PodClass) -> frozenset[str] | None:
        """The names of the only nodes that can pass, or ``None`` for all."""
        return None

    def preferred(self, pod_class: PodClass) -> Sequence[str]:
        """The names of nodes that are tried in their order, before all others and without scores.

        Asked only where the pod is not refused as a whole.
        """
        return ()

    def filter(self, pod_class: PodClass, columns: Columns) -> Filter | None:
        """The filter of a class; ``None``: the plugin skips. May raise ``RefusedError``."""
        return None

    def score(self, pod_class: PodClass, columns: Columns) -> Score | None:
        """The score of a class; ``None``: the plugin skips."""
        return None

    def outlook(self, pod_class: PodClass, columns: Columns, row: int) -> str:
        """What a class would get on a feasible node, in words for people; empty: nothing."""
        return ""

    def details(self, pod: Pod, columns: Columns, row: int) -> Sequence[str]:
        """More about why the plugin's filter refuses a node, in lines for people."""
        return ()

    def prepare(self, pod: Pod, node: str) -> None:
        """Decide what the pod gets on the chosen node; ``RefusedError`` prevents the placement.

        What decides how its place is booked is decided here, ``reserve`` comes after the booking.
        """

    def post_filter(self, pod: Pod, refused: Mapping[str, Verdict]) -> Rescue | None:
        """Help a pod that no node takes; preemption is skipped where a node is named."""
        return None

    def concerned(self, event: ClusterEvent) -> bool:
        """Whether an event may help any class at all; asked once, before ``helps``."""
        return True

    def helps(self, event: ClusterEvent, pod_class: PodClass) -> bool:
        """Whether a class that this plugin has refused should be tried again; if in doubt, yes."""
        return True

    def reserve(self, pod: Pod, node: str) -> None:
        """Reserve for a placed pod; ``RefusedError`` undoes the placement."""

    def unreserve(self, pod: Pod, node: str) -> None:
        """Undo ``reserve``; also called where ``reserve`` did nothing."""

    def permit(self, pod: Pod, node: str) -> float:
        """0: bind now; else the seconds after which to ask again; ``RefusedError`` undoes it."""
        return 0.0

    def pre_bind(self, pod: Pod, node: str) -> Awaitable[None] | None:
        """Prepare the binding, awaiting what takes time; ``RefusedError`` undoes the placement."""

    def preparing(self, pod: Pod, node: str) -> float:
        """0: what ``pre_bind`` began is done; else the seconds after which to ask again.

        ``RefusedError`` undoes the placement.
        """
        return 0.0

    def bind(self, pod: Pod, node: str) -> Awaitable[bool] | None:
        """Bind the pod in the plugin's own way; a false answer leaves that to others."""
        return None

    def writes(self, pod: Pod, node: str) -> Sequence[tuple[objects.Ref, objects.Object]]:
        """Merge patches of other objects that must be written before the pod is bound."""
        return ()

    def marks(self, pod: Pod, node: str) -> Mapping[str, str]:
        """Annotations that record what ``reserve`` decided; the pod gets them with its binding."""
        return {}

    def post_bind(self, pod: Pod, node: str) -> None:
        """Take note that the pod is bound."""


def hopeless(*reasons: str) -> Sequence[Verdict]:
    """Verdicts of one reason each, against which fewer pods do not help."""
    return [Verdict((reason,), resolvable=False) for reason in reasons]


def hopeful(*reasons: str) -> Sequence[Verdict]:
    """Verdicts of one reason each, against which fewer pods may help."""
    return [Verdict((reason,), resolvable=True) for reason in reasons]


class Coded(Filter):
    """A static filter: a code for each node, and a reason for each code, from 1 on."""

    def __init__(self, codes: Ints, *reasons: str) -> None:
        self._codes = compact(codes)
        self.verdicts = hopeless(*reasons)

    def codes(self, rows: Rows) -> Ints:
        return self._codes[rows].astype(np.int64)


def masked(passing: Bools, reason: str) -> Coded:
    """A static filter with one reason, from one array of booleans."""
    return Coded((~passing).astype(np.int64), reason)


def scaled(raw: Ints, *, reverse: bool = False) -> Ints:
    """The framework's own normalisation: the largest raw value becomes 100, or 0 in reverse."""
    most = int(raw.max(initial=0))
    if most == 0:
        return np.full(raw.size, MAX_SCORE if reverse else 0, np.int64)
    share = raw * MAX_SCORE // most
    return MAX_SCORE - share if reverse else share
