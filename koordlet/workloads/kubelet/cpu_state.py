"""The checkpoint ``cpu_manager_state``: CPUs that the kubelet's static policy holds.

Rules:
1. A wrong checksum refuses the file: half of it may be of before, half of after. None, or zero, is
   accepted as the kubelet accepts it from older versions.
2. Keys are matched as Go matches them: older kubelets wrote ``defaultCPUSet``.
3. The oldest format names containers by id, without pods: it is refused with that reason.
4. An entry that is no CPU list refuses the file: to leave it out would free CPUs that are held.
"""

from __future__ import annotations

from collections.abc import Mapping

from koordlet.kubeapi import shapes
from koordlet.model import cpuset, kubelet
from koordlet.workloads.kubelet import checksum

NAME = "cpu_manager_state"

_CHECKSUM = shapes.integer(0, 2**32 - 1)


def decode(text: str) -> kubelet.CpuState:
    """The state; ``ValueError`` for a file that says nothing reliable."""
    body = shapes.mapping(shapes.parse_bytes(text.encode(errors="surrogatepass")))
    policy = shapes.text(shapes.find(body, "policyName") or "", [])
    default = shapes.text(shapes.find(body, "defaultCpuSet") or "", [])
    entries = _entries(shapes.find(body, "entries"))
    # A later format, which names CPUs of whole pods as well, has another dump.
    of_pods = shapes.find(body, "podEntries")
    recorded = _CHECKSUM(shapes.find(body, "checksum") or 0, [])
    if recorded and of_pods is None and checksum.fnv1a(dump(policy, default, entries)) != recorded:
        msg = "the checksum is wrong: the file is incomplete or damaged"
        raise ValueError(msg)
    held = {
        uid: {name: cpuset.CPUSet.parse(listed) for name, listed in containers.items()}
        for uid, containers in entries.items()
    }
    for uid, cpus in _of_pods(of_pods).items():
        held.setdefault(uid, {})[""] = cpus
    return kubelet.CpuState(policy=policy, default=cpuset.CPUSet.parse(default), entries=held)


def _entries(value: object) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for uid, containers in shapes.mapping(value or {}).items():
        if isinstance(containers, str):
            msg = "the file has the format of Kubernetes 1.17 or older, which does not name pods"
            raise ValueError(msg)
        listed = shapes.mapping(containers)
        found[uid] = {name: shapes.text(cpus, []) for name, cpus in listed.items()}
    return found


def _of_pods(value: object) -> dict[str, cpuset.CPUSet]:
    found: dict[str, cpuset.CPUSet] = {}
    for uid, entry in shapes.mapping(value or {}).items():
        listed = shapes.find(shapes.mapping(entry), "cpuSet")
        found[uid] = cpuset.CPUSet.parse(shapes.text(listed or "", []))
    return found


def dump(policy: str, default: str, entries: Mapping[str, Mapping[str, str]]) -> str:
    """The text that the checksum is made of."""
    listed = " ".join(
        f"{uid}:map[" + " ".join(f"{name}:{cpus}" for name, cpus in sorted(held.items())) + "]"
        for uid, held in sorted(entries.items())
    )
    return (
        f"(*state.CPUManagerCheckpoint){{PolicyName:(string){policy}"
        f" DefaultCPUSet:(string){default}"
        f" Entries:(map[string]map[string]string)map[{listed}] Checksum:(checksum.Checksum)0}}"
    )
