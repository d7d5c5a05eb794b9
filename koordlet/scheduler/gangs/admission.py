"""Whether a pod of a gang may enter the queue, and what it waits for.

Covers: the checks and messages before the queue. Does not cover: counting (``book``), what happens
to a pod that may enter (``attempt``).

Checks, in this order:
1. The PodGroup exists, where the pod's form has one.
2. The gang is initialised.
3. A group that was satisfied once admits every member, by the policy ``once-satisfied``.
4. No gang of the group lacks anything.
"""

from __future__ import annotations

from koordlet.kubeapi.pod_groups import GangForm, MatchPolicy
from koordlet.scheduler.gangs.book import GangBook, GangGroup, Lack
from koordlet.scheduler.objects.pods import Pod

#: Gangs that a message names; an event takes 1 024 characters.
_NAMED = 8


def refusal(book: GangBook, pod: Pod) -> str:
    """Why a pod must not be tried yet; empty: it may."""
    membership = pod.gang
    if membership is None:
        return ""
    entry = book.of(pod)
    if entry is None or (membership.has_object and entry.pod_group is None):
        native = f'waiting for pods\'s pod group "{membership.name}" to appear in scheduling queue'
        where = f"gangName: {membership.id}, podName: {pod.key}"
        return native if membership.form is GangForm.NATIVE else f"can't find gang, {where}"
    gang = entry.gang
    if gang is None:
        return f"gang has not init, gangName: {membership.id}, podName: {pod.key}"
    group = book.group(entry)
    if group.ready or (gang.match_policy is MatchPolicy.ONCE_SATISFIED and group.satisfied):
        return ""
    if gang.native:
        return "waiting for minCount pods from a gang to appear in scheduling queue"
    return f"{_lacking(group)}, current gang: {gang.id}, podName: {pod.key}"


def _lacking(group: GangGroup) -> str:
    parts = [
        f"memberGangs [{named(sorted(group.lacks[lack]))}] {lack.value}"
        for lack in Lack
        if lack is not Lack.NOTHING and group.lacks[lack]
    ]
    return f"gangGroup [{named(group.ids)}] basic check: {', '.join(parts)}"


def named(ids: tuple[str, ...] | list[str]) -> str:
    """Ids for a message; of many the first ones."""
    more = len(ids) - _NAMED
    return ",".join(ids[:_NAMED]) + (f" and {more} more" if more > 0 else "")
