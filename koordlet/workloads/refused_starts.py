"""Containers that did not start because the kernel refused something of their cgroups. Pure.

Covers: the status of a container as the kubelet writes it. Does not cover: telling it.

A runtime that cannot set a container up ends with a sentence of its own, and the kubelet copies it
into the status: while it waits for the next attempt the reason is in ``state.waiting`` or, during a
back-off, in ``lastState.terminated``. What names a cgroup, or memory that was too little for the
runtime itself, may be a limit around it; anything else (an image, a mount, a command) is not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from koordlet.kubeapi import podwire

#: Reasons of a state that is no start: the runtime gave up before the first instruction.
_REASONS = frozenset(
    {"CreateContainerError", "RunContainerError", "StartError", "ContainerCannotRun"}
)
_WORDS = ("cgroup", "cpuset", "memory limit too low", "oom-kill")
#: Characters of the runtime's sentence that are kept: its reason is at the end.
_MOST = 300
#: Each attempt has another one, and is no other news.
_ID = re.compile(r"[0-9a-f]{64}")


def of(status: podwire.ContainerStatus | None) -> str:
    """The runtime's own words; empty where it runs, or where it was nothing of the kind."""
    if status is None or "running" in (status.state or ()):
        return ""
    for state in _states(status):
        reason, message = state.get("reason"), state.get("message")
        if reason in _REASONS and isinstance(message, str):
            lower = message.lower()
            if any(word in lower for word in _WORDS):
                # The last of its sentences, each of which has the next one after a colon.
                words = _ID.sub("…", message.strip())
                end = words[-_MOST:]
                return words if words == end else end.partition(": ")[2] or end
    return ""


def _states(status: podwire.ContainerStatus) -> Iterator[Mapping[str, object]]:
    for state in (status.state, status.last_state):
        for kind in ("waiting", "terminated"):
            inner = (state or {}).get(kind)
            if isinstance(inner, Mapping):
                yield inner
