"""Runs in the machine: the driver of resource claims on the real resctrl and cgroups.

Covers: a claim with CPUs of one node and ways and bandwidth of its cache, asked for over the socket
as a kubelet asks; SIGKILL before each change of preparing and of unpreparing, with the next agent
after it; a final stop.
Does not cover: what must be seen (``tests.vm.test_claims``), a real kubelet, and the API server,
which is the embedded store.

    python3 -m tests.vm.probes.claims CHANGES

Prints JSON: the control files without the claim, with it, and what was wrong after each kill. Of
each verb as many changes are tried as CHANGES says.
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
from koordlet.host.fs import root
from koordlet.kubeapi import kinds, objects
from koordlet.model import kubelet, observed, pod, qos, snapshot
from koordlet.rpc import services
from koordlet.rpc.gen import dra_pb2
from koordlet.scheduler.store import adapter
from koordlet.state import paths
from tests.kit import agents, deadline, dying, images

GROUPS, PLACE = pathlib.Path("/sys/fs/cgroup"), pathlib.Path("/sys/fs/resctrl")
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
SYSTEM = pathlib.Path("/sys/devices/system/cpu")
#: The claim's NUMA node, and its CPUs on the machine ``2s8t``.
NUMA, CPUS = 1, (4, 8)


class DyingHost(dying.DyingHost):
    """Really kills its process before one change."""

    def _step(self) -> bool:
        try:
            return super()._step()
        except dying.Killed:
            os.kill(os.getpid(), signal.SIGKILL)
            raise


class Sources:
    """What kubelet and API server say: a pod that waits for its claim, and one without."""

    def __init__(self) -> None:
        self.newest = observed.Observed(
            node=snapshot.NodeInfo(name=NODE),
            kubelet=kubelet.Kubelet(configuration=kubelet.Configuration()),
            pods=(self._pod("p", "a"), self._pod("ls")),
        )

    def _pod(self, name: str, *claims: str) -> pod.Pod:
        box = pod.Container(name="main", id=f"{name}-main", group=f"{name}/main", claims=claims)
        return pod.Pod(
            uid=f"uid-{name}",
            namespace="t",
            name=name,
            qos=qos.Qos.LS,
            kube_qos=qos.KubeQos.BURSTABLE,
            source="probe",
            phase=pod.Phase.PENDING if claims else pod.Phase.RUNNING,
            group=name,
            requests={"cpu": 2000},
            containers=(box,),
        )

    def take(self) -> observed.Observed:
        """The newest."""
        return self.newest


async def serve(change: int) -> None:
    """An agent with its driver, killed before that change; told to end, it puts all back."""
    host = DyingHost(root.LiveHost(), NEVER)
    store = adapter.Store(WORK / "store.db")
    await store.open()
    sources: Any = Sources()
    made = tick.Tick(host, agents.effective(CONFIG), base="", take=sources.take)
    who = lifecycle.Agent(
        made, paths.choose({}, root=True, state_dir=str(WORK / "state")), enforce=True
    )
    driver = dra_driver.DraDriver(who, sources, store, str(WORK))

    def one_pass() -> bool:
        return who.one_pass(slow=True)

    settle(one_pass)
    driver.start(one_pass)
    told = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, told.set)
    # What comes from now on is a change for a claim.
    host.after = host.count + change
    while not told.is_set():
        driver.on_pass()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(told.wait(), 0.2)
    await driver.stop()
    who.restore()
    who.close()
    await store.close()


def settle(one_pass: Callable[[], bool]) -> None:
    """Pass until nothing changes."""
    for _ in range(16):
        if not one_pass():
            return
    raise RuntimeError("the agent goes on changing things")


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

    os.waitpid(forked(lambda: asyncio.run(call())), 0)
    return path.read_text() if path.exists() else GONE


def container(name: str) -> None:
    """A pod's group with one container and its process."""
    here = GROUPS
    for step in (name, "main"):
        (here / "cgroup.subtree_control").write_text("+cpuset +cpu")
        here /= step
        here.mkdir(exist_ok=True)
    # Its pid is the kernel's to give: what is compared has names for it.
    process = subprocess.Popen(["sleep", "infinity"])
    (here / "cgroup.procs").write_text(str(process.pid))


def image() -> dict[str, str]:
    """Every control file of the pods, and of resctrl but for the threads of the root.

    Files that a program may write to be woken by pressure say what the pressure is.
    """
    host = root.LiveHost()
    tops = [str(GROUPS / name) for name in ("p", "ls")]
    if (PLACE / "schemata").exists():
        tops.append(str(PLACE))
    seen = images.image(host, *tops)
    root_tasks = str(PLACE / "tasks")
    return {p: t for p, t in seen.items() if p != root_tasks and not p.endswith(".pressure")}


def part(**more: Any) -> dict[str, Any]:
    """What the claim got of one device."""
    return {"driver": DRIVER, "pool": NODE, **more}


def cache_of() -> int:
    """The L3 cache of the claim's node."""
    [cache] = {int((SYSTEM / f"cpu{cpu}/cache/index3/id").read_text()) for cpu in range(*CPUS)}
    return cache


async def make() -> str:
    """The claim, allocated; its UID."""
    results = [
        part(device=f"numa-{NUMA}", request="cpus", consumedCapacity={"cpu": "2"}),
        part(
            device=f"cache-{cache_of()}",
            request="cache",
            consumedCapacity={"ways": "4", "groups": "1", "mbaPercent": "20"},
        ),
    ]
    state = {
        "allocation": {"devices": {"results": results}},
        "reservedFor": [{"resource": "pods", "name": "p", "uid": "uid-p"}],
    }
    meta = {"name": "a", "namespace": "t"}
    store = adapter.Store(WORK / "store.db")
    await store.open()
    made = await store.create(kinds.RESOURCE_CLAIMS, {"metadata": meta, "spec": {}})
    ref = objects.ref(kinds.RESOURCE_CLAIMS, made)
    await store.patch(ref, objects.Merge({"status": state}), subresource="status")
    await store.close()
    return objects.text(made, "uid")


def differences(got: dict[str, str], expected: dict[str, str]) -> list[str]:
    """Files that differ, with both texts."""
    return [
        f"{path}: {got.get(path)!r}, expected {expected.get(path)!r}"
        for path in sorted(got.keys() | expected.keys())
        if got.get(path) != expected.get(path)
    ]


def main() -> None:
    """Everything, in order."""
    changes = int(sys.argv[1])
    WORK.mkdir(parents=True)
    log.configure("error", "json")
    for name in ("p", "ls"):
        container(name)
    os.waitpid(forked(lambda: (WORK / "uid").write_text(asyncio.run(make()))), 0)
    uid = (WORK / "uid").read_text()
    bare = image()
    wrong: list[str] = []

    first = agent()
    free = image()
    answers = [ask("Prepare", uid)]
    held = image()
    answers += [ask("Prepare", uid), ask("Unprepare", uid), ask("Unprepare", uid)]
    wrong += differences(image(), free)
    ended(first, signal.SIGKILL)

    tried = {"Prepare": 0, "Unprepare": 0}
    for change in range(1, changes + 1):
        for verb, expected in (("Prepare", held), ("Unprepare", free)):
            victim = agent(change)
            died = ask(verb, uid) == GONE
            tried[verb] += died
            # Its own end is waited for, or it is killed after its answer.
            os.waitpid(victim, 0) if died else ended(victim, signal.SIGKILL)
            following = agent()
            answer = ask(verb, uid)
            ended(following, signal.SIGKILL)
            unlike = differences(image(), expected)
            if answer or unlike:
                wrong.append(f"{verb}, killed at change {change}: {answer} {unlike}")
        if max(tried.values()) < change:
            break

    last = agent()
    answers.append(ask("Prepare", uid))
    answers.append(ask("Unprepare", uid))
    ended_as = ended(last, signal.SIGTERM)
    said = {
        "uid": uid,
        "cache": cache_of(),
        "answers": answers,
        "free": {path: text for path, text in free.items() if path in bare or "schemata" in path},
        "held": {path: text for path, text in held.items() if text != free.get(path)},
        "tried": tried,
        "wrong": wrong,
        "status": ended_as,
        "left": differences(image(), bare),
        "log": LOG.read_text()[-4000:],
    }
    print(json.dumps(said))


main()
