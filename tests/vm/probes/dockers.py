"""Runs in the machine: containers of Docker on cgroup v2, and the agent at work on them.

    python3 -m tests.vm.probes.dockers (cgroupfs|systemd)

One container lies where Docker puts it and is declared by itself; one lies in a group or slice that
is declared as a whole; one nobody declares.

Prints JSON: the groups' names and what they are taken for; the sets before, under the agent, after
``docker update``, after ``daemon-reload``, after a kill and ``koordlet restore``.
"""

from __future__ import annotations

import pathlib
import subprocess
import sys
from typing import Any

from koordlet.host.cgroup import hierarchies, tree
from koordlet.host.fs import live_host
from koordlet.workloads import containers, unmanaged
from tests.kit import deadline
from tests.kit.containerd import docker
from tests.vm.probes import playing

SYSTEMD = sys.argv[1] == "systemd"
GROUPS = pathlib.Path("/sys/fs/cgroup")
WORK = pathlib.Path("/run/dockers", sys.argv[1])
#: A parent of one's own, as each driver takes it.
PARENT = "batch.slice" if SYSTEMD else "/batch"
CONFIG = """apiVersion: koordlet.io/v1
kind: Config
report: {http: {enabled: false}, grpc: {enabled: false}}
policies:
  reserved_cpus: {cpus: "0"}
  shared_pools: {enableControllers: true}
workloads:
  - {name: one, qos: BE, match: {%s}}
  - {name: batch, qos: BE, match: {%s}}
"""


def group_of(box: str) -> str:
    """A container's group, wherever it is."""
    (folder,) = (match for match in GROUPS.glob(f"**/*{box}*") if match.is_dir())
    return str(folder.relative_to(GROUPS))


def allowed(box: str) -> str:
    """Of its first process, as the scheduler sees it."""
    return playing.allowed(GROUPS / group_of(box))


def understood() -> dict[str, Any]:
    """What we take Docker's groups for."""
    host = live_host.LiveHost()
    reader = tree.CgroupReader(host, hierarchies.discover(host))
    seen = containers.find(containers.walk(reader.children))
    strangers = unmanaged.Finder(host)
    strangers.look(reader.layout, [])
    reader.close()
    return {
        "containers": {
            container.id: [container.group, container.runtime]
            for container in seen.containers.values()
        },
        "pods": list(seen.pods),
        "strangers": [pod.group for pod in strangers.pods],
    }


def play(engine: docker.Docker, facts: dict[str, Any]) -> None:
    """The agent comes, is killed, is undone; comes again, and goes."""
    boxes = [engine.run(), engine.run(PARENT), engine.run()]
    facts["boxes"], facts["groups"] = boxes, [group_of(box) for box in boxes]
    facts["understood"] = understood()
    facts["before"] = [allowed(box) for box in boxes]
    if SYSTEMD:
        config = CONFIG % (f"unit: docker-{boxes[0]}.scope", "unit: batch.slice")
    else:
        config = CONFIG % (f"cgroup: docker/{boxes[0]}", "cgroup: batch")
    every = facts["before"][0]
    with playing.agent(WORK, config) as who:

        def narrowed() -> bool:
            return every not in (allowed(boxes[0]), allowed(boxes[1]))

        deadline.until(narrowed, "sets")
        facts["ours"] = [allowed(box) for box in boxes]
        for box in boxes[:2]:
            engine.update(box, CpusetCpus=every)
        deadline.until(narrowed, "sets after docker update")
        facts["updated"] = [allowed(box) for box in boxes]
        if SYSTEMD:
            subprocess.run(["systemctl", "daemon-reload"], check=True)
            facts["reloaded"] = [allowed(box) for box in boxes]
        who.kill()
        who.wait()
    words = [sys.executable, "-m", "koordlet", "restore", "--state-dir", str(WORK / "state")]
    facts["restore"] = subprocess.run(words, stdout=subprocess.DEVNULL, check=False).returncode
    facts["restored"] = [allowed(box) for box in boxes]
    with playing.agent(WORK, config) as who:
        deadline.until(narrowed, "sets of the next agent")
        who.terminate()
        facts["status"] = who.wait(deadline.PATIENCE)
    facts["after"] = [allowed(box) for box in boxes]


def main() -> None:
    """One life of a daemon with two agents."""
    WORK.mkdir(parents=True)
    daemon = docker.running(WORK / "d", bare=True, systemd=SYSTEMD)
    with daemon as engine, playing.told(WORK) as facts:
        play(engine, facts)


if __name__ == "__main__":
    main()
