"""Making room inside a quota: whose leaving lets a pod be admitted, and where it goes then.

Covers: the cheapest victims over all nodes, the node with them gone. Does not cover: room on one
node alone (``framework.preemption``), evicting.

Rules:
1. Victims are pods of the same quota with a lower priority that may be preempted. Those that end
   already come first, then those that no budget protects, then the least important; of equals the
   one whose workload was disrupted least.
2. Who is taken is given back, the most important first, as long as the pod is still admitted.
3. If no node takes the pod then, one is looked for where more of the same quota have to go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from koordlet.scheduler.cluster.columns import Columns
from koordlet.scheduler.framework import dryrun
from koordlet.scheduler.framework.dryrun import Candidate
from koordlet.scheduler.objects.disruption import Protection
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.quotas.book import QuotaBook
from koordlet.scheduler.quotas.tree import QuotaNode

#: The node for the pod with the others gone; ``None``: none.
Choose = Callable[[], Candidate | None]


def attempt(
    book: QuotaBook,
    columns: Columns,
    candidates: Sequence[Pod],
    *,
    admitted: Callable[[], bool],
    protection: Protection,
    choose: Choose,
    disrupted: dryrun.Disrupted | None = None,
) -> Candidate | None:
    """The victims, and the node where the pod goes when they have left; ``None``: no use."""
    candidates = dryrun.ordered(candidates, dryrun.importance, disrupted)
    violating, others = protection.split([pod for pod in candidates if not pod.terminating])
    ending = [pod for pod in candidates if pod.terminating]
    absence = _Absence(book, columns, disrupted)
    relieved = book.relieved
    try:
        if not absence.until(admitted, [*ending, *reversed(others), *reversed(violating)]):
            return None
        absence.spare(admitted, ending)
        with_columns = absence.from_columns()
        chosen = choose()
        if chosen is None:
            return None
        for victim in chosen.victims:
            absence.leave(victim)
        kept = {victim.key for victim in (*chosen.victims, *ending)}
        kept |= {pod.key for pod in with_columns if columns.rows.get(pod.node) == chosen.row}
        absence.spare(admitted, [pod for pod in absence.gone.values() if pod.key in kept])
        victims = list(absence.gone.values())
        return Candidate.of(chosen.row, victims, len(protection.split(victims)[0]))
    finally:
        absence.end()
        book.take_relief(left=relieved)


def candidates(book: QuotaBook, node: QuotaNode, pod: Pod) -> list[Pod]:
    """The pods of a quota that may go for a pod (rule 1)."""
    return [
        each.pod for each in book.counted(node) if each.usage.used and dryrun.may_go(each.pod, pod)
    ]


class _Absence:
    """Pods that are gone from the book, and from the columns, for the time of a trial."""

    def __init__(
        self, book: QuotaBook, columns: Columns, disrupted: dryrun.Disrupted | None
    ) -> None:
        self._book, self._columns, self._disrupted = book, columns, disrupted
        self.gone: dict[str, Pod] = {}
        self._rows: dict[str, int] = {}

    def leave(self, pod: Pod) -> None:
        """Let a pod use nothing of its quota."""
        if pod.key not in self.gone:
            self.gone[pod.key] = pod
            self._book.release(pod)

    def until(self, admitted: Callable[[], bool], several: Sequence[Pod]) -> bool:
        """Let one after the other leave until that suffices; whether it does."""
        for pod in several:
            self.leave(pod)
            if admitted():
                return True
        return False

    def spare(self, admitted: Callable[[], bool], but: Sequence[Pod]) -> None:
        """Give back whom one can, but for these (rule 2)."""
        kept = {pod.key for pod in but}
        for pod in dryrun.ordered(self.gone.values(), dryrun.importance, self._disrupted):
            if pod.key in kept:
                continue
            self._come_back(pod)
            if not admitted():
                self.leave(pod)
                if pod.key in self._rows:
                    self._columns.remove(pod)

    def from_columns(self) -> list[Pod]:
        """Let those that are gone leave their nodes, too."""
        for pod in self.gone.values():
            row = self._columns.rows.get(pod.node)
            if row is not None and pod.key in self._columns.pods[row]:
                self._rows[pod.key] = row
                self._columns.remove(pod)
        return list(self.gone.values())

    def _come_back(self, pod: Pod) -> None:
        del self.gone[pod.key]
        if (row := self._rows.get(pod.key)) is not None:
            self._columns.place(pod, row)
        self._book.put(pod)

    def end(self) -> None:
        """Everything is as before."""
        for pod in list(self.gone.values()):
            self._come_back(pod)
