"""What a person is shown of each gang: how many of its minimum have a node, and why it waits.

Covers: the rows of ``koordlet sim`` and ``koordlet get gangs``. Does not cover: printing.

Why a gang waits, the first that is so:
1. Its first waiting member is never tried, or may not enter the queue: what that member is told.
2. The last cycle of its group failed: the first member that did not fit, and its reason.
"""

from __future__ import annotations

from typing import Any

from koordlet.model.record import dataclass
from koordlet.scheduler.gangs import admission
from koordlet.scheduler.gangs.book import GangBook, GangEntry
from koordlet.scheduler.gangs.gang_core import GangCore
from koordlet.scheduler.objects.pods import Pod


@dataclass(frozen=True, slots=True, kw_only=True)
class GangSummary:
    """One gang, for a row of a table."""

    #: ``namespace/name``.
    id: str
    form: str
    #: ``None``: missing, or unreadable.
    min: int | None
    #: Members that count, and those of them that have a node.
    pods: int
    placed: int
    #: The gangs that it waits for and that wait for it.
    group: tuple[str, ...] = ()
    #: The member that it waits for and why; empty: it does not wait.
    member: str = ""
    message: str = ""

    def document(self) -> dict[str, Any]:
        """The JSON document of the row."""
        return {
            "gang": self.id,
            "form": self.form,
            "min": self.min,
            "pods": self.pods,
            "placed": self.placed,
            "group": list(self.group),
            "member": self.member or None,
            "message": self.message or None,
        }


def summaries(core: GangCore, book: GangBook) -> list[GangSummary]:
    """All gangs that have a PodGroup or a member, by name."""
    entries = (entry for entry in book if entry.pod_group is not None or entry.members)
    return [_summary(core, book, entry) for entry in sorted(entries, key=lambda entry: entry.key)]


def _summary(core: GangCore, book: GangBook, entry: GangEntry) -> GangSummary:
    assumed, ids = core.pod_cache.assumed, book.group(entry).ids
    waiting = [
        pod
        for key, pod in sorted(entry.children.items())
        if key not in entry.bound and key not in assumed
    ]
    placed = len(entry.children) - len(waiting)
    gang = entry.gang
    member, message = "", ""
    if waiting or gang is None or placed < gang.min:
        member, message = _obstacle(core, book, entry, waiting)
    own = entry.pod_group
    first = next(iter(entry.members.values()), None)
    form = first.gang.form.value if first is not None and first.gang is not None else ""
    return GangSummary(
        id=entry.key.partition("@")[0],
        form="PodGroup" if own is not None else form,
        min=None if gang is None else gang.min,
        pods=len(entry.children),
        placed=placed,
        group=ids if len(ids) > 1 else (),
        member=member,
        message=message,
    )


def _obstacle(
    core: GangCore, book: GangBook, entry: GangEntry, waiting: list[Pod]
) -> tuple[str, str]:
    pod = next(iter((*waiting, *entry.members.values())), None)
    if pod is None:
        return "", "it has no pods"
    if why := core.why_never(pod) or admission.refusal(book, pod):
        return pod.key, why
    obstacle = book.group(entry).obstacle
    return ("", "") if obstacle is None else (obstacle.pod, obstacle.message)
