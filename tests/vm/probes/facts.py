"""Runs in the guest: prints what the guest says of itself as JSON.

Read from the kernel's own files and from lscpu, with nothing of the project, so that it can serve
as the other side of a comparison.
"""

from __future__ import annotations

import json
import pathlib
import subprocess

CPUS, NODES = (pathlib.Path("/sys/devices/system") / name for name in ("cpu", "node"))


def numbers(text: str) -> list[int]:
    """The numbers of a list such as ``0-3,8``."""
    cpus: list[int] = []
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        if first:
            cpus += range(int(first), int(last or first) + 1)
    return cpus


def cpu(number: int) -> dict[str, object]:
    """Where one CPU is."""
    folder = CPUS / f"cpu{number}"
    topology = folder / "topology"
    return {
        "socket": int((topology / "physical_package_id").read_text()),
        "siblings": numbers((topology / "thread_siblings_list").read_text()),
        "nodes": [int(path.name[4:]) for path in folder.glob("node[0-9]*")],
        "l3": numbers((folder / "cache/index3/shared_cpu_list").read_text()),
    }


def node(number: int) -> dict[str, object]:
    """What one NUMA node has."""
    folder = NODES / f"node{number}"
    memory = next(
        line.split()[3]
        for line in (folder / "meminfo").read_text().splitlines()
        if "MemTotal:" in line
    )
    return {
        "cpus": numbers((folder / "cpulist").read_text()),
        "memory_kib": int(memory),
        "distances": [int(word) for word in (folder / "distance").read_text().split()],
    }


def lscpu() -> list[list[int]]:
    """CPU, core, socket and node of each online CPU, as lscpu has them.

    Not its --json: with an offline CPU that prints a bare dash.
    """
    command = ["lscpu", "--parse=CPU,CORE,SOCKET,NODE"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    rows = [line for line in text.splitlines() if not line.startswith("#")]
    return [[int(word) for word in row.split(",")] for row in rows]


def main() -> None:
    """Prints everything."""
    online = numbers((CPUS / "online").read_text())
    mounts = [line.split() for line in pathlib.Path("/proc/mounts").read_text().splitlines()]
    facts = {
        **{name: numbers((CPUS / name).read_text()) for name in ("possible", "present")},
        "online": online,
        "cpus": {number: cpu(number) for number in online},
        "nodes": {n: node(n) for n in numbers((NODES / "online").read_text())},
        "lscpu": lscpu(),
        "cgroups": {m[1]: [m[2], m[3]] for m in mounts if m[2] in ("cgroup", "cgroup2")},
        "own": pathlib.Path("/proc/self/cgroup").read_text().splitlines(),
    }
    print(json.dumps(facts))


if __name__ == "__main__":
    main()
