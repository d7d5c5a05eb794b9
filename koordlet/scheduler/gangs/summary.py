"""What a person is shown of each gang: how many of its minimum have a node, and why it waits.

Covers: the rows of ``koordlet sim`` and ``koordlet get gangs``. Does not cover: printing.

Why a gang waits, the first that is so:
1. Its first waiting member is never tried, or may not enter the queue: what that member is told.
2. The last cycle of its group failed: the first member that did not fit, and its reason.
"""

from __future__ import annotations

from typing import Any

from koordlet.model.record import dataclass
from koordlet.scheduler.gangs import admission, status
from koordlet.scheduler.gangs.book import GangBook, GangEntry
from koordlet.scheduler.gangs.gang_core import GangCore
from koordlet.scheduler.gangs.group_members import GroupMembers, row_of
from koordlet.scheduler.gangs.network_tree import ClusterNetwork
from koordlet.scheduler.objects.pods import Pod


@dataclass(frozen=True, slots=True, kw_only=True)
class GangSummary:
    """One gang, for a row of a table."""

    #: ``namespace/name``, and the key in the book.
    id: str
    key: str
    form: str
    #: ``None``: missing, or unreadable.
    min: int | None
    #: Members that count, and those of them that have a node.
    pods: int
    placed: int
    #: As the status of a PodGroup has it; of the other forms, as it would be.
    phase: str = ""
    #: When its first pod was created, RFC 3339.
    since: str = ""
    #: The gangs that it waits for and that wait for it.
    group: tuple[str, ...] = ()
    #: The member that it waits for and why; empty: it does not wait.
    member: str = ""
    message: str = ""
    #: Of a gang that is gathered: the lowest place of the network that its placed members share.
    place: str = ""

    def document(self) -> dict[str, Any]:
        """The JSON document of the row."""
        return {
            "gang": self.id,
            "form": self.form,
            "min": self.min,
            "pods": self.pods,
            "placed": self.placed,
            "phase": self.phase,
            "since": self.since or None,
            "group": list(self.group),
            "member": self.member or None,
            "message": self.message or None,
            "place": self.place or None,
        }


def summaries(core: GangCore, book: GangBook, network: ClusterNetwork) -> list[GangSummary]:
    """All gangs that have a PodGroup or a member, by name."""
    entries = (entry for entry in book if entry.pod_group is not None or entry.members)
    return [
        _summary(core, book, network, entry)
        for entry in sorted(entries, key=lambda entry: entry.key)
    ]


def members(core: GangCore, entry: GangEntry) -> list[dict[str, Any]]:
    """Each member: its node, or why it has none."""
    rows = []
    for key, pod in sorted(entry.members.items()):
        placed, queued = core.pod_cache.get(key), core.queue.get(key)
        message = queued.why if queued is not None else ""
        node = placed.node if placed is not None else ""
        why = "" if node else message or pod.stored_condition[1]
        rows.append({"pod": key, "node": node or None, "message": why or None})
    return rows


def _summary(
    core: GangCore, book: GangBook, network: ClusterNetwork, entry: GangEntry
) -> GangSummary:
    group = book.group(entry)
    ids, several = group.ids, GroupMembers(core, group).waiting()
    waiting = [pod for pod in several if pod.key in entry.children]
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
        key=entry.key,
        form="PodGroup" if own is not None else form,
        min=None if gang is None else gang.min,
        pods=len(entry.children),
        placed=placed,
        phase=_phase(entry, placed, tried=book.group(entry).obstacle is not None),
        since=min((pod.created for pod in entry.members.values()), default=""),
        group=ids if len(ids) > 1 else (),
        member=member,
        message=message,
        place=_place(core, network, entry) if gang is not None and gang.gathers else "",
    )


def _place(core: GangCore, network: ClusterNetwork, entry: GangEntry) -> str:
    tree = network.tree(core.pod_cache.columns)
    rows = (row_of(core, pod) for pod in entry.children.values())
    return "" if tree is None else tree.shared({row for row in rows if row is not None})


def _phase(entry: GangEntry, placed: int, *, tried: bool) -> str:
    stored = "" if entry.pod_group is None else str(entry.pod_group.status.get("phase") or "")
    if stored or entry.gang is None:
        return stored or "Pending"
    children = list(entry.children.values())
    counts = status.PodGroupCounts(
        children=len(children),
        scheduled=placed,
        running=sum(pod.running for pod in children),
        tried=tried,
    )
    return status.phase("", entry.gang.min, counts)


def _obstacle(
    core: GangCore, book: GangBook, entry: GangEntry, waiting: list[Pod]
) -> tuple[str, str]:
    pod = min(waiting or entry.members.values(), key=lambda pod: pod.key, default=None)
    if pod is None:
        return "", "it has no pods"
    if why := core.why_never(pod) or admission.refusal(book, pod):
        return pod.key, why
    obstacle = book.group(entry).obstacle
    return ("", "") if obstacle is None else (obstacle.pod, obstacle.message)
