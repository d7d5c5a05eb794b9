"""Pods a second, CPU and memory beside kube-scheduler, on one real API server, in alternating runs.

Both bind by the API, each as it is deployed: kube-scheduler with 5 000 requests a second, ours with
its service account; the server does not ration either. A scheduler stands still while the pods
come, so that their creation is no part of what is measured: from the first event to the last
binding, and what follows it (events, conditions).

``python -m tests.bench.throughput SHAPE NODES PODS ROUNDS [--audit]`` prints the rows of the table
in ``docs/scheduler.md``, and what each asked of the server for a pod. The gate is CPU time, which
neighbours hardly change; and pods a second, which they do, within ``NOISE``.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import dataclasses
import json
import os
import signal
import statistics
import tempfile
import time
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import Any

from koordlet.kubeapi import kinds
from koordlet.scheduler.sim import shapes
from tests.bench import gate
from tests.cluster.deployed import ACCOUNT, SPACE, AuditLog, Deployed
from tests.kit import deadline, k8s_lab

OURS, THEIRS, SERVER = "koordlet", "kube-scheduler", "kube-apiserver"
_NAMES = {OURS: ACCOUNT, THEIRS: "default-scheduler"}
#: Our CPU time of a pod, in theirs: what is held of plain pods, of preemptors, and the budget.
LIMIT, PREEMPTORS_LIMIT, BUDGET = 0.3, 0.5, 0.2
#: Of their pods a second ours must reach this share, in the better of the runs of each.
NOISE = 0.85
_SPACE = "sched-1"
#: Of a scheduler without a lease.
CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
profiles: [{schedulerName: koordlet-scheduler}]
"""
_POLL, _AFTER = 0.1, 3.0
#: What a shape has beside nodes and pods, of which controllers make claims.
_CLAIMING = {
    "DeviceClass": f"/apis/{kinds.DEVICE_CLASSES.api_version}/deviceclasses",
    "ResourceSlice": f"/apis/{kinds.RESOURCE_SLICES.api_version}/resourceslices",
    "ResourceClaimTemplate": (
        f"/apis/{kinds.RESOURCE_CLAIMS.api_version}/namespaces/{_SPACE}/resourceclaimtemplates"
    ),
}
_RESOURCE = ("resource", "subresource")
_CLAIMS = f"/apis/{kinds.RESOURCE_CLAIMS.api_version}/namespaces/{_SPACE}/resourceclaims"
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclasses.dataclass(frozen=True, slots=True)
class Run:
    """What one scheduler did with the pods of one run."""

    pods: int
    seconds: float
    cpu_seconds: float
    server_seconds: float
    memory_bytes: int
    #: What it asked of the server for a pod, where there is an audit log.
    requests: Mapping[str, float] = dataclasses.field(default_factory=dict)

    @property
    def rate(self) -> float:
        """Pods a second."""
        return self.pods / self.seconds

    @property
    def cpu_usec(self) -> float:
        """Of a pod."""
        return self.cpu_seconds / self.pods * 1e6

    @property
    def server_share(self) -> float:
        """Of all CPUs, until the last binding."""
        return self.server_seconds / self.seconds / (os.cpu_count() or 1)


class Arena(Deployed):
    """A control plane with the nodes of a shape, and one scheduler at a time."""

    def __init__(self, lab: Any, folder: Path, shape: str, nodes: int) -> None:
        super().__init__(lab, folder, CONFIG)
        self._shape, self._count = shape, nodes
        self._claims = False
        users = {OURS: AuditLog(lab, SPACE), THEIRS: AuditLog(lab, user=f"system:{THEIRS}")}
        self.audits = users if lab.audit else {}

    def furnish(self) -> None:
        """Make the nodes, and what else the shape has beside its pods."""
        self.install(nodes=0)
        bodies = [*shapes.generate(self._shape, self._count, 0)]
        self.admin.need("POST", "/api/v1/namespaces", {"metadata": {"name": _SPACE}})
        account = f"/api/v1/namespaces/{_SPACE}/serviceaccounts/default"
        deadline.until(lambda: self.admin.ask("GET", account)[0] == 200, "controllers work")
        for name, value in (("low", 0), ("high", 10)):
            body = {"metadata": {"name": name}, "value": value}
            self.admin.need("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", body)
        self.admin.hollow_nodes([body for body in bodies if body["kind"] == "Node"])
        for body in bodies:
            if path := _CLAIMING.get(str(body["kind"]), ""):
                self.admin.need("POST", path, body)
                self._claims = True
        # Nothing else that is measured needs it, and it would be the third on two CPUs.
        if not self._claims:
            os.kill(self.lab.processes.pid("kube-controller-manager"), signal.SIGSTOP)

    @contextlib.contextmanager
    def scheduler(self, who: str) -> Iterator[int]:
        """One of the two, ready; its process."""
        with self.process(who) as pid:
            self.submit(who, [{"metadata": {"name": "first"}, "spec": pause("1m")}])
            deadline.until(self.all_bound, f"{who} decides", seconds=120)
            yield pid

    @contextlib.contextmanager
    def process(self, who: str) -> Iterator[int]:
        """One of the two, started; at the end it is gone, and all pods with it."""
        if who == OURS:
            self.start(who)
            pid = self.replicas[who].pid
        else:
            flags = f"--secure-port={self.lab.processes.state['ports']['scheduler']}"
            self.lab._client(who, flags)
            pid = self.lab.processes.pid(who)
        try:
            yield pid
        finally:
            self.kill(who) if who == OURS else self.lab.processes.stop(who, signal.SIGKILL)
            self.admin.need("DELETE", f"/api/v1/namespaces/{_SPACE}/pods", _AT_ONCE)
            self._until_claims(0)

    def run(self, who: str, pods: int) -> Run:
        """Bind so many pods."""
        bodies = [*shapes.generate(self._shape, self._count, pods)]
        waiting = [b for b in bodies if b["kind"] == "Pod" and "nodeName" not in b["spec"]]
        self.submit(who, [b for b in bodies if b["kind"] == "Pod" and "nodeName" in b["spec"]])
        server = self.lab.processes.pid(SERVER)
        with self.scheduler(who) as pid:
            os.kill(pid, signal.SIGSTOP)
            try:
                self.submit(who, waiting)
                self._until_claims(pods)
                before = self._asked(who)
            finally:
                spent, served, begun = cpu(pid), cpu(server), time.perf_counter()
                os.kill(pid, signal.SIGCONT)
            while not self.all_bound():
                time.sleep(_POLL)
            seconds, served = time.perf_counter() - begun, cpu(server) - served
            time.sleep(_AFTER)
            asked = self._asked(who)
            requests = {what: count / pods for what, count in (asked - before).items()}
            return Run(pods, seconds, cpu(pid) - spent, served, memory(pid), requests)

    def _asked(self, who: str) -> collections.Counter[str]:
        """How often it has asked the server for what, but for watches."""
        events = self.audits[who].read() if self.audits else ()
        answered = [event for event in events if event["stage"] == "ResponseComplete"]
        return collections.Counter(
            f"{event['verb']} {'/'.join(filter(None, map(event['objectRef'].get, _RESOURCE)))}"
            for event in answered
            if "objectRef" in event and event["verb"] != "watch"
        )

    def _until_claims(self, number: int) -> None:
        """Wait until controllers have made, or removed, the claims of all pods."""
        if self._claims:
            deadline.until(
                lambda: len(self.admin.need("GET", _CLAIMS)["items"]) == number,
                f"{number} claims",
                seconds=120,
            )

    def submit(self, who: str, bodies: list[Any]) -> None:
        """Create pods for one of the two."""
        for body in bodies:
            spec = {**body["spec"], "schedulerName": _NAMES[who]}
            spec["terminationGracePeriodSeconds"] = 0
            priority = spec.pop("priority", 0)
            spec["priorityClassName"] = "high" if priority else "low"
            named = {"metadata": {**body["metadata"], "namespace": _SPACE}, "spec": spec}
            self.admin.need("POST", f"/api/v1/namespaces/{_SPACE}/pods", named)

    def all_bound(self) -> bool:
        """Whether no pod waits."""
        query = "limit=1&resourceVersion=0&fieldSelector=spec.nodeName%3D"
        return not self.admin.need("GET", f"/api/v1/namespaces/{_SPACE}/pods?{query}")["items"]


_AT_ONCE = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}


def pause(cpu: str) -> Any:
    """The specification of a pod of one container."""
    resources = {"requests": {"cpu": cpu}}
    return {"containers": [{"name": "pause", "image": "pause", "resources": resources}]}


def cpu(pid: int) -> float:
    """The CPU seconds of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def memory(pid: int) -> int:
    """The resident set of a process in bytes."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@contextlib.contextmanager
def arena(shape: str, nodes: int, *, audit: bool = False) -> Iterator[Arena]:
    """A control plane, furnished."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        config = folder / "kube-scheduler.json"
        client = {"kubeconfig": str(folder / "k8s/kube-scheduler.kubeconfig")}
        body = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            "clientConnection": {**client, "qps": 5000, "burst": 5000},
        }
        config.write_text(json.dumps(body))
        flags = {THEIRS: [f"--config={config}"], SERVER: ["--enable-priority-and-fairness=false"]}
        if any(body["kind"] in _CLAIMING for body in shapes.generate(shape, 1, 0)):
            # Controllers work on, and no kubelet says that a node is there.
            flags["kube-controller-manager"] = ["--node-monitor-grace-period=1h"]
        with k8s_lab.cluster(folder / "k8s", nodes=1, args=flags, audit=audit) as lab:
            contest = Arena(lab, folder, shape, nodes)
            try:
                contest.furnish()
                yield contest
            finally:
                with contextlib.suppress(Exception):
                    os.kill(lab.processes.pid("kube-controller-manager"), signal.SIGCONT)
                contest.close()


def measure(
    shape: str, nodes: int, pods: int, rounds: int, *, audit: bool = False
) -> Generator[dict[str, list[Run]]]:
    """Both, in turn; after each round all runs so far."""
    runs: dict[str, list[Run]] = {OURS: [], THEIRS: []}
    with arena(shape, nodes, audit=audit) as contest:
        for _ in range(rounds):
            for who, several in runs.items():
                several.append(contest.run(who, pods))
                print(f"  {shape}, {nodes} nodes: {_row(who, several[-1:])}", flush=True)
            yield runs


def _row(who: str, runs: list[Run]) -> str:
    """The median of each."""
    rate, cpu, server, memory = (
        statistics.median(getattr(run, name) for run in runs)
        for name in ("rate", "cpu_usec", "server_share", "memory_bytes")
    )
    return (
        f"{who} {rate:.0f} pods/s, {cpu / 1000:.2f} ms CPU a pod, {memory / 2**20:.0f} MiB,"
        f" API server {server:.0%} of the CPUs"
    )


def beside_kube_scheduler() -> gate.Ratio:
    """Our CPU time of a pod in kube-scheduler's; at least as many pods a second."""
    return _beside("SchedulingBasic", 1000, 1000, LIMIT)


def preemption_beside_kube_scheduler() -> gate.Ratio:
    """The same of pods that each take the place of three less important ones."""
    return _beside("PreemptionBasic", 400, 200, PREEMPTORS_LIMIT)


def _beside(shape: str, nodes: int, pods: int, limit: float) -> gate.Ratio:
    """Of one run each; of two each where the first do not hold."""
    with contextlib.closing(measure(shape, nodes, pods, 2)) as rounds:
        ratio, slow = _judge(next(rounds), f"{shape} beside kube-scheduler, {nodes} nodes", limit)
        if slow or not ratio.ok:
            ratio, slow = _judge(next(rounds), ratio.name, limit)
    if slow:
        raise ValueError(slow)
    return ratio


def _judge(runs: dict[str, list[Run]], name: str, limit: float) -> tuple[gate.Ratio, str]:
    """CPU time, and what is wrong with pods a second."""
    ours, theirs = runs[OURS], runs[THEIRS]
    rate, other = (max(run.rate for run in several) for several in (ours, theirs))
    slow = f"{rate:.0f} pods a second; kube-scheduler binds {other:.0f}"
    ratio = gate.Ratio(
        name=name,
        ours=min(run.cpu_usec for run in ours),
        reference=min(run.cpu_usec for run in theirs),
        limit=limit,
        goal=BUDGET,
        unit="CPU us a pod",
        against="kube-scheduler",
    )
    return ratio, slow if rate < NOISE * other else ""


if __name__ == "__main__":
    parser_ = argparse.ArgumentParser(prog="python -m tests.bench.throughput")
    parser_.add_argument("shape")
    for name_ in ("nodes", "pods", "rounds"):
        parser_.add_argument(name_, type=int)
    parser_.add_argument("--audit", action="store_true", help="what they ask of the server, too")
    *_, runs_ = measure(**vars(parser_.parse_args()))
    for who_, several_ in runs_.items():
        print(_row(who_, several_))
        for what_, often_ in sorted(several_[-1].requests.items()):
            print(f"  {often_:8.2f} a pod: {what_}")
