"""Other writers of koordlet's files, guessed from the cgroup's name.

Covers: the usual writer of a group, the sentence for a contested file.
Does not cover: noticing it (``apply.intents``), pacing (``apply.backoff``).
"""

from __future__ import annotations

from koordlet.model import container_names, plan

_RUNTIMES = ("cri-containerd-", "crio-", "docker-", "libpod-")


def usual_writer(group: str) -> str:
    """The usual other writer of a cgroup of this name."""
    above, _, last = group.rpartition("/")
    top = group.partition("/")[0]
    if _is_container(last):
        return "the container runtime (runc update), or systemd at a daemon-reload"
    if last == container_names.NESTED and _is_container(above.rpartition("/")[2]):
        return "the container runtime (crun update)"
    if top in ("kubepods", "kubepods.slice", "kubelet", "kubelet.slice"):
        return "the kubelet, or the container runtime below it"
    if top == "docker":
        return "Docker (docker update)"
    if last.endswith((".service", ".scope", ".slice")):
        return "systemd, at a daemon-reload or when a property of the unit is set"
    return "unknown"


def _is_container(name: str) -> bool:
    return name.startswith(_RUNTIMES) and name.endswith(".scope")


def contested(step: plan.Step) -> str:
    """Describe a contested file in a sentence."""
    wanted = step.action
    return f"{wanted.target} had {step.was!r} from another writer ({usual_writer(wanted.group)})"
