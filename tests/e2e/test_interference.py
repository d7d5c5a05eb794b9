"""Interference as a reason to move: a service waits, and a best-effort pod leaves its node."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from koordlet.host.cgroup import hierarchies
from tests.kit import clusters, live, standalone

pytestmark = [pytest.mark.e2e, pytest.mark.soak]

WORKLOADS = [
    {"name": "web", "qos": "LS", "match": {"cgroup": "web"}},
    {"name": "batch", "qos": "BE", "match": {"cgroup": "batch"}},
]
BUSY = "while True: pass"
#: Of the 1 024 of best-effort work beside it on its CPU: a service that waits, however fast the
#: machine is.
FEW_SHARES = b"102"


def busy(place: live.Place, name: str) -> None:
    """A process that wants a whole CPU, in a group of its own in every hierarchy, v2 included."""
    place.group(name, place.read("cpuset.cpus")[:1])
    process = subprocess.Popen([sys.executable, "-S", "-c", BUSY], stdin=subprocess.DEVNULL)
    place.children.append(process)
    for top in place.tops:
        directory = live.HOST.at(f"{top}/{name}")
        if not live.HOST.exists(directory):
            live.HOST.mkdir(directory)
        live.HOST.write(live.HOST.at(f"{directory}/cgroup.procs"), b"%d\n" % process.pid)


def test_a_best_effort_pod_leaves_the_node_whose_service_waits_for_a_cpu(
    place: live.Place, tmp_path: Path
) -> None:
    """By the feed of a real agent, once it has waited for 30 s; the service itself stays."""
    holder = hierarchies.discover(live.HOST).holder("cpu")
    assert holder is not None
    for name in ("web", "batch"):
        busy(place, name)
    shares = live.HOST.at(f"{holder.mount}/{place.name}/web/cpu.shares")
    live.HOST.write(shares, FEW_SHARES)
    policy = standalone.leaving(tmp_path, "LatencySensitiveWaits")
    pods = [
        clusters.pod(
            f"{name}-1",
            cpu="1",
            namespace="default",
            meta=standalone.OWNER,
            labels={"koordinator.sh/qosClass": qos},
        )
        for name, qos in (("web", "LS"), ("batch", "BE"))
    ]
    below = "--cgroup-root", place.name
    with standalone.scheduler(tmp_path, "--deschedule", str(policy)) as address:
        standalone.take(tmp_path, standalone.large_node("n1"), *pods)
        standalone.take(tmp_path, standalone.large_node("n2"))
        with (
            standalone.agent(tmp_path, "n1", *below, workloads=WORKLOADS),
            standalone.agent(tmp_path, "n2", *below),
        ):
            move = standalone.first_move(address)
    assert (move["pod"], move["from"], move["to"]) == ("default/batch-1", "n1", "n2")
    assert move["why"] == "node is under pressure: LatencySensitiveWaits"
