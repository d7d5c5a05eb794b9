"""Runs in the machine: the driver of resource claims on the real resctrl and cgroups.

Covers: a claim with CPUs of one node and ways and bandwidth of its cache, asked for over the socket
as a kubelet asks; SIGKILL before a change of preparing and before one of unpreparing, with the next
agent after it; a final stop.
Does not cover: what must be seen (``tests.vm.test_claims``), a real kubelet, and the API server,
which is the embedded store.

    python3 -m tests.vm.probes.claims CHANGE …

Prints JSON: the control files without the claim, with it, and what was wrong after each kill. Both
verbs are cut short before each CHANGE, counted from 1.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from typing import Any

from koordlet import log
from koordlet.agent import dra_driver, lifecycle, tick
from koordlet.host.fs import live_host
from koordlet.kubeapi import kinds, objects
from koordlet.model import kubelet, observed, pod, qos, snapshot
from koordlet.rpc import services
from koordlet.rpc.gen import dra_pb2
from koordlet.scheduler.store import adapter
from koordlet.state import paths
from tests.kit import agents, deadline, dying, images

GROUPS, PLACE = pathlib.Path("/sys/fs/cgroup"), pathlib.Path("/sys/fs/resctrl")
TIER = "kubepods/burstable"
WORK = pathlib.Path("/run/claims")
NODE, DRIVER = "n1", "koordlet.cpu"
SOCKET = WORK / f"{DRIVER}-reg.sock"
PLUGIN = "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin"
CONFIG = """
node: {name: n1}
policies:
  dra_driver: {mode: enforce}
  reserved_cpus: {cpus: '0'}
  resctrl: {mode: enforce, mount: true}
"""
LOG = WORK / "log"
GONE = "the driver is gone"
NEVER = 10**9
#: Of a CPU of node 1 on the machine ``2s8t``.
CACHE_OF = pathlib.Path("/sys/devices/system/cpu/cpu4/cache/index3/id")
PODS = ("p", "ls")


class DyingHost(dying.DyingHost):
    """Really kills its process before one change."""

    def _step(self) -> bool:
        try:
            return super()._step()
        except dying.Killed:
            os.kill(os.getpid(), signal.SIGKILL)
            raise


def identity(name: str) -> str:
    """The id of its container."""
    return name[0].encode().hex() * 32


def listed(name: str) -> pod.Pod:
    """One of the kubelet's pods; ``p`` waits for its claim."""
    claims = ("a",) if name == "p" else ()
    return pod.Pod(
        uid=f"uid-{name}",
        namespace="t",
        name=name,
        qos=qos.Qos.LS,
        kube_qos=qos.KubeQos.BURSTABLE,
        source="cluster",
        phase=pod.Phase.PENDING if claims else pod.Phase.RUNNING,
        match=f"pod=uid-{name}",
        requests={"cpu": 2000},
        containers=(pod.Container(name="main", id=identity(name), claims=claims),),
    )


class Sources:
    """What kubelet and API server say."""

    newest = observed.Observed(
        node=snapshot.NodeInfo(name=NODE),
        kubelet=kubelet.Kubelet(configuration=kubelet.Configuration()),
        pods=tuple(map(listed, PODS)),
        kubelet_listed=True,
    )

    def take(self) -> observed.Observed:
        """The newest."""
        return self.newest


async def serve(change: int) -> None:
    """An agent with its driver, killed before that change; told to end, it puts all back."""
    host = DyingHost(live_host.LiveHost(), NEVER)
    store = adapter.Store(WORK / "store.db")
    await store.open()
    sources: Any = Sources()
    made = tick.Tick(host, agents.effective(CONFIG), base="", take=sources.take)
    state = paths.choose({}, root=True, state_dir=str(WORK / "state"))
    who = lifecycle.Agent(made, state, enforce=True)
    driver = dra_driver.DraDriver(who, sources, store, str(WORK))

    def one_pass() -> bool:
        return who.one_pass(slow=True)

    if all(one_pass() for _ in range(16)):
        raise RuntimeError("the agent goes on changing things")
    driver.start(one_pass)
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    # What comes from now on is a change for a claim.
    host.after = host.count + change
    while not stopping.is_set():
        driver.on_pass()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stopping.wait(), 0.2)
    await driver.stop()
    who.restore()
    who.close()
    await store.close()


def forked(act: Callable[[], object]) -> int:
    """The process that does it."""
    pid = os.fork()
    if pid == 0:
        with LOG.open("a") as file:
            os.dup2(file.fileno(), 2)
            try:
                act()
            except BaseException:  # noqa: BLE001 -- nothing of it may reach the parent's code
                traceback.print_exc(file=file)
                os._exit(1)
            os._exit(0)
    return pid


def agent(change: int = NEVER) -> int:
    """An agent that serves; it is killed before that change."""
    SOCKET.unlink(missing_ok=True)
    pid = forked(lambda: asyncio.run(serve(change)))

    def serves() -> bool:
        if os.waitpid(pid, os.WNOHANG)[0]:
            raise SystemExit(f"the agent ended: {LOG.read_text()[-4000:]}")
        return SOCKET.exists()

    deadline.until(serves, "the socket", seconds=120)
    return pid


def ended(pid: int, number: int) -> int:
    """How a process ended that was sent a signal."""
    os.kill(pid, number)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def ask(verb: str, uid: str) -> str:
    """What the driver answers about the claim; ``GONE`` where it dies before it has answered."""
    path = WORK / "answer"
    path.unlink(missing_ok=True)

    async def call() -> None:
        request = getattr(dra_pb2, f"Node{verb}ResourcesRequest")()
        request.claims.add(namespace="t", name="a", uid=uid)
        method = f"{PLUGIN}/Node{verb}Resources"
        answer = await services.ask(str(SOCKET), method, request, 120)
        parsed = getattr(dra_pb2, f"Node{verb}ResourcesResponse").FromString(answer)
        path.write_text(parsed.claims[uid].error)

    # gRPC is no guest of a process that forks.
    os.waitpid(forked(lambda: asyncio.run(call())), 0)
    return path.read_text() if path.exists() else GONE


def container(name: str) -> None:
    """A pod's group with one container and its process, as a kubelet and its runtime make them."""
    here = GROUPS
    for step in (*TIER.split("/"), f"poduid-{name}", identity(name)):
        (here / "cgroup.subtree_control").write_text("+cpuset +cpu")
        here /= step
        here.mkdir(exist_ok=True)
    process = subprocess.Popen(["sleep", "infinity"])
    (here / "cgroup.procs").write_text(str(process.pid))


def image() -> dict[str, str]:
    """Every control file of the pods, and of resctrl but for the threads of the root.

    Files that a program may write to be woken by pressure say what the pressure is.
    """
    tops = [f"{GROUPS}/{TIER}", *([str(PLACE)] if (PLACE / "schemata").exists() else [])]
    seen = images.image(live_host.LiveHost(), *tops)
    root_tasks = str(PLACE / "tasks")
    return {p: t for p, t in seen.items() if p != root_tasks and not p.endswith(".pressure")}


def cache_of() -> int:
    """The L3 cache of node 1."""
    return int(CACHE_OF.read_text())


def part(**more: Any) -> dict[str, Any]:
    """What the claim got of one device."""
    return {"driver": DRIVER, "pool": NODE, **more}


async def make() -> str:
    """The claim, allocated; its UID."""
    results = [
        part(device="numa-1", request="cpus", consumedCapacity={"cpu": "2"}),
        part(
            device=f"cache-{cache_of()}",
            request="cache",
            consumedCapacity={"ways": "4", "groups": "1", "mbaPercent": "20"},
        ),
    ]
    status = {
        "allocation": {"devices": {"results": results}},
        "reservedFor": [{"resource": "pods", "name": "p", "uid": "uid-p"}],
    }
    meta = {"name": "a", "namespace": "t"}
    store = adapter.Store(WORK / "store.db")
    await store.open()
    made = await store.create(kinds.RESOURCE_CLAIMS, {"metadata": meta, "spec": {}})
    ref = objects.ref(kinds.RESOURCE_CLAIMS, made)
    await store.patch(ref, objects.Merge({"status": status}), subresource="status")
    await store.close()
    return objects.text(made, "uid")


def killed(change: int, verb: str, uid: str, expected: dict[str, str]) -> str:
    """What was wrong once the next agent had ended what one began that was killed before it."""
    victim = agent(change)
    answer = ask(verb, uid)
    if answer != GONE:
        ended(victim, signal.SIGKILL)
        return f"{verb} made fewer than {change} changes, and said {answer!r}"
    os.waitpid(victim, 0)
    following = agent()
    answer = ask(verb, uid)
    ended(following, signal.SIGKILL)
    unlike = images.difference(expected, image())
    return f"{verb}, killed at change {change}: {answer} {unlike}" if answer or unlike else ""


def main() -> None:
    """Everything, in order."""
    WORK.mkdir(parents=True)
    log.configure("error", "json")
    for name in PODS:
        container(name)
    os.waitpid(forked(lambda: (WORK / "uid").write_text(asyncio.run(make()))), 0)
    uid = (WORK / "uid").read_text()
    bare = image()

    first = agent()
    free = image()
    answers = [ask("Prepare", uid)]
    held = image()
    answers += [ask("Prepare", uid), ask("Unprepare", uid), ask("Unprepare", uid)]
    restored = images.difference(free, image())
    ended(first, signal.SIGKILL)
    wrong = [
        killed(change, verb, uid, expected)
        for change in map(int, sys.argv[1:])
        for verb, expected in (("Prepare", held), ("Unprepare", free))
    ]
    last = agent()
    answers += [ask("Prepare", uid), ask("Unprepare", uid)]
    status = ended(last, signal.SIGTERM)
    report = {
        "group": str(PLACE / f"koordlet-claim-{uid}"),
        "boxes": {name: f"{GROUPS}/{TIER}/poduid-{name}/{identity(name)}" for name in PODS},
        "cache": cache_of(),
        "answers": answers,
        "free": free,
        "held": held,
        "wrong": [each for each in (*wrong, str(restored or "")) if each],
        "status": status,
        "left": images.difference(bare, image()),
        "log": LOG.read_text()[-4000:],
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
