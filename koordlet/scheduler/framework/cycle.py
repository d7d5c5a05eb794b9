"""The scheduling cycle: the decision about one pod, over the columns.

Covers: views by class within a bound, the choice of a node, the message where there is none.
Does not cover: the queue, preemption, binding.

Views are kept for the classes that were asked most recently: each costs 12 to 24 bytes a node, and
all together at most ``VIEW_BYTES``; with more classes in turn than fit, a pod costs a new view.
"""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

import numpy as np

from koordlet.scheduler.cluster.columns import Columns
from koordlet.scheduler.framework import Failure, Rescue, Verdict, crowding, dryrun, messages
from koordlet.scheduler.framework.failures import Failures
from koordlet.scheduler.framework.profile import Profile
from koordlet.scheduler.framework.view import Scored, View, first
from koordlet.scheduler.objects import unserved
from koordlet.scheduler.objects.pods import Pod, PodClass

VIEW_BYTES = 192 << 20
_PER_NODE = 24
#: Per cent, and the least number of nodes that a share means.
_EVERY, _LEAST = 100, 100
#: The plugin without which no pod with claims is placed.
_CLAIMING = "DynamicResources"


class Cycle:
    """The scheduling cycle of one profile."""

    def __init__(
        self, columns: Columns, profile: Profile, disrupted: dryrun.Disrupted | None = None
    ) -> None:
        self.columns = columns
        self.profile = profile
        self._views: OrderedDict[PodClass, View] = OrderedDict()
        #: Where a sample begins.
        self._start = 0
        self._failures = Failures(columns)
        self.dry_runs = dryrun.DryRunCache(columns, disrupted=disrupted)
        # Nearly all plugins take no part in nearly all points: who is asked is found once.
        self.preparing = profile.having("prepare")
        self.reserving = profile.having("reserve", "marks", "permit")
        self.binding = profile.having("permit", "pre_bind", "bind", "writes")
        self.after = profile.having("post_bind")
        self.gates = profile.having("pre_enqueue")
        self._rescuing = profile.having("post_filter")
        self._refining = profile.having("refine")
        self._pre_filtering = profile.having("pre_filter")
        self._hiding = profile.having("hidden")
        self._preferring = profile.having("preferred")
        self._claiming = any(plugin.name == _CLAIMING for plugin in profile.plugins)

    def class_for(self, pod: Pod) -> PodClass:
        """The class that a pod is tried as."""
        pod_class = pod.pod_class
        for plugin in self._refining:
            pod_class = plugin.refine(pod, pod_class)
        return pod_class

    @contextlib.contextmanager
    def sight(self, pod: Pod, pod_class: PodClass | None = None) -> Iterator[View]:
        """The view of a pod (as this class) while the block runs; some pods are hidden from it."""
        if pod_class is None:
            pod_class = self.class_for(pod)
        hidden = self._hidden(pod_class)
        for concealed in hidden:
            self.columns.conceal(concealed)
        try:
            yield self.view(pod_class)
        finally:
            for concealed in hidden:
                self.columns.reveal(concealed)

    def _hidden(self, pod_class: PodClass) -> list[Pod]:
        """Placed pods that a class does not see."""
        return [pod for plugin in self._hiding for pod in plugin.hidden(pod_class)]

    def view(self, pod_class: PodClass) -> View:
        """The view of a class, up to date."""
        known = self._views.get(pod_class)
        if known is None:
            known = self._views[pod_class] = View(pod_class, self.columns, self.profile)
            most = max(16, VIEW_BYTES // (_PER_NODE * max(1, self.columns.size)))
            while len(self._views) > most:
                self._views.popitem(last=False)
        else:
            self._views.move_to_end(pod_class)
        known.refresh()
        return known

    def filtering(self, pod_class: PodClass) -> View:
        """The view of a class for its filters alone: which nodes it knows to pass may be old."""
        known = self._views.get(pod_class)
        return known if known is not None and known.is_built else self.view(pod_class)

    def choose(self, pod: Pod, shunned: Collection[int] = ()) -> int:
        """The row of the best feasible node that is not excluded; -1 where there is none."""
        if not self.columns.rows or self._refused(pod) is not None:
            return -1
        pod_class = self.class_for(pod)
        if pod_class is pod.pod_class or not self._hidden(pod_class):
            return self._best(pod, self.view(pod_class), shunned)
        with self.sight(pod, pod_class) as view:
            return self._best(pod, view, shunned)

    def _refused(self, pod: Pod) -> Failure | None:
        if pod.claims and not self._claiming:
            message = messages.refused(len(self.columns.rows), unserved.CLAIMS_OF_PROFILE)
            return Failure(message, None, frozenset((_CLAIMING,)))
        for plugin in self._pre_filtering:
            if why := plugin.pre_filter(pod):
                message = messages.refused(len(self.columns.rows), why)
                return Failure(message, None, frozenset((plugin.name,)))
        return None

    def _best(self, pod: Pod, view: View, shunned: Collection[int]) -> int:
        if view.refused is not None:
            return -1
        row = self._before_scores(pod, view, shunned)
        if row is not None:
            return row
        if self.profile.share < _EVERY:
            return self._sampled(view, shunned)
        return view.best(shunned)

    def _sampled(self, view: View, shunned: Collection[int]) -> int:
        """The best of a sample of feasible nodes, which begins after the last sample."""
        size = self.columns.size
        wanted = max(_LEAST, len(self.columns.rows) * self.profile.share // _EVERY)
        feasible = view.scored(shunned=shunned).rows
        order = np.lexsort(((feasible - self._start) % size, np.isin(feasible, view.late())))
        some = feasible[order][:wanted]
        if not some.size:
            return -1
        if feasible.size > wanted:
            self._start = int(some[-1] + 1) % size
        return first(view.scored(some))

    def _before_scores(self, pod: Pod, view: View, shunned: Collection[int] = ()) -> int | None:
        """The node that is taken whatever it scores: where room was made, or a preferred one."""
        names = [pod.nominated] if pod.nominated else []
        for plugin in self._preferring:
            names += plugin.preferred(view.pod_class)
        for name in names:
            row = self.columns.rows.get(name)
            if row is not None and row not in shunned and view.passes(row):
                return row
        return None

    def verdict(self, pod: Pod, row: int) -> Verdict | None:
        """The first refusal of one node; ``None``: it passes all filters now."""
        with self.sight(pod) as view:
            return None if view.passes(row) else view.verdict(row)

    def beside(self, pod: Pod, row: int, guests: Sequence[Pod]) -> Verdict | None:
        """The first refusal of a feasible node with other pods on it; ``None``: it stays one."""
        with self.sight(pod) as view:
            known = self.dry_runs.of(view.pod_class, pod.priority).refusals
            return crowding.beside(self.columns, view, row, guests, known)

    def refused_beside(
        self, pod: Pod, promised: Callable[[int], Sequence[Pod]]
    ) -> dict[int, Verdict]:
        """What ``beside`` has said of nodes, as far as it still holds."""
        with self.sight(pod) as view:
            known = self.dry_runs.of(view.pod_class, pod.priority).refusals
            return crowding.refused_beside(self.columns, view, known, promised)

    def crowded_out(
        self, pod: Pod, rows: Iterable[int], promised: Callable[[int], Sequence[Pod]]
    ) -> dict[int, Verdict]:
        """Refusals of those of these nodes that would count in the scores of others."""
        with self.sight(pod) as view:
            known = self.dry_runs.of(view.pod_class, pod.priority).refusals
            verdicts = {
                row: crowding.beside(self.columns, view, row, guests, known)
                for row in view.compared(rows)
                if (guests := promised(row))
            }
        return {row: verdict for row, verdict in verdicts.items() if verdict is not None}

    def crowded(
        self, pod: Pod, alone: Mapping[int, Verdict], guests: Mapping[int, Sequence[Pod]]
    ) -> dict[int, Verdict]:
        """What nodes that refuse a pod ``alone`` say otherwise with other pods on them."""
        with self.sight(pod) as view:
            known = self.dry_runs.of(view.pod_class, pod.priority).crowded
            return crowding.crowded(self.columns, view, alone, guests, known)

    def drop(self, concerned: Callable[[PodClass], bool]) -> None:
        """Forget the views of some classes: objects that they depend on have changed."""
        for pod_class in [pod_class for pod_class in self._views if concerned(pod_class)]:
            del self._views[pod_class]
        self._failures.clear()
        self.dry_runs.clear()

    def scored(self, pod: Pod) -> Scored:
        """Every feasible node with its total score, as ``choose`` sees them now."""
        with self.sight(pod) as view:
            row = self._before_scores(pod, view)
            return view.scored() if row is None else view.scored(np.array([row], np.intp))

    def failure(self, pod: Pod, promised: Mapping[int, Verdict] | None = None) -> Failure:
        """Why no node is feasible; computed once while nothing changes.

        ``promised``: what nodes say otherwise because of the pods that are nominated there.
        """
        if self.columns.rows and (inadmissible := self._refused(pod)) is not None:
            return inadmissible
        pod_class = self.class_for(pod)
        failure = self._failures.current(pod_class) or self._explain(pod, pod_class)
        if not promised or failure.verdicts is None:
            return failure
        return self._failures.beside(pod_class, promised)

    def rescue(self, pod: Pod, failure: Failure) -> Rescue:
        """Ask the plugins to help a pod that no node takes, up to the first that names a node."""
        columns = self.columns
        refused = RefusedNodes(columns, failure.verdicts or {})
        answers: list[str] = []
        for plugin in self._rescuing:
            rescue = plugin.post_filter(pod, refused)
            if rescue is None:
                continue
            answers += [rescue.message] if rescue.message else []
            if rescue.node in columns.rows:
                return Rescue(", ".join(answers), rescue.node)
        return Rescue(", ".join(answers))

    def _explain(self, pod: Pod, pod_class: PodClass) -> Failure:
        total = len(self.columns.rows)
        if not total:
            return Failure(messages.NO_NODES, None)
        with self.sight(pod, pod_class) as view:
            if view.refused is not None:
                who, why = view.refused
                return Failure(messages.refused(total, why.reason), None, frozenset((who,)))
            renewed = self._failures.renewed(view)
        return self._failures.keep(pod_class, renewed)


class RefusedNodes(Mapping[str, Verdict]):
    """Verdicts by the name of the node: most plugins do not look, and there are thousands."""

    def __init__(self, columns: Columns, verdicts: Mapping[int, Verdict]) -> None:
        self._columns, self._verdicts = columns, verdicts

    def __getitem__(self, name: str) -> Verdict:
        return self._verdicts[self._columns.rows[name]]

    def __iter__(self) -> Iterator[str]:
        return (self._columns.chosen(row).name for row in self._verdicts)

    def __len__(self) -> int:
        return len(self._verdicts)
