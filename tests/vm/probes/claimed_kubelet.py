"""Runs in the machine: a real kubelet that is killed at each step of a resource claim's life.

    python3 -m tests.vm.probes.claimed_kubelet (containerd|crio) FOLDER PACKAGES LAB KEYS

The arguments are those of ``kubelet_node``, and a folder with the API server's certificate and key
and with its authority's certificate: a kubelet says who it is over TLS alone. The API server is
that of the tests, and there is no scheduler: claims are allocated and pods bound here.

Prints JSON, by step: the CPUs of all from the kubelet's death until it has the driver again, those
of the pod's first act, those of both pods while it runs, those of the other one afterwards.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import pathlib
import shutil
import signal
import ssl
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import yaml

from tests.kit import deadline, killed_agent
from tests.kit.apiserver import apart
from tests.kit.containerd import image
from tests.vm.probes import kubelet_node, playing

WORK, NODE, DRIVER = kubelet_node.WORK, "n1", "koordlet.cpu"
ORDER = WORK / "order"
KEYS = kubelet_node.MORE[-1]
ADDRESS = "127.0.0.1:8001"
#: The node's own: on loopback, but no address of it.
NODE_IP = "198.18.0.1"
PODS = "/api/v1/namespaces/default/pods"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
#: Steps until the container runs, and from the deletion of its pod.
BEGINS = ("bound", "preparing", "prepared", "running")
ENDS = ("ending", "unpreparing", "unprepared")
KUBELET = {
    **{name: value for name, value in kubelet_node.KUBELET.items() if name != "staticPodPath"},
    "contentType": "application/json",
    "syncFrequency": "2s",
}
CONFIG = {
    **kubelet_node.CONFIG,
    "node": {"name": NODE},
    "kube": {"mode": "on", "kubeconfig": str(WORK / "api/kubeconfig")},
    "policies": {**kubelet_node.CONFIG["policies"], "dra_driver": {"mode": "enforce"}},
}


def ask(method: str, path: str, body: object = None, kind: str = "application/json") -> Any:
    """What the API server answers; nothing where the object is not there."""
    headers = {"Authorization": "Bearer secret", "Content-Type": kind}
    context = ssl.create_default_context(cafile=str(KEYS / "ca.crt"))
    connected = http.client.HTTPSConnection(ADDRESS, timeout=60, context=context)
    with contextlib.closing(connected) as connection:
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        text = answer.read()
    if answer.status == http.HTTPStatus.NOT_FOUND:
        return None
    assert answer.status < http.HTTPStatus.BAD_REQUEST, text
    return json.loads(text)


def make(name: str, *, claimed: bool) -> str:
    """A pod without a node, and the claim that is reserved for it; its UID."""
    box: dict[str, Any] = {
        "name": "main",
        "image": image.NAME,
        "imagePullPolicy": "IfNotPresent",
        "command": kubelet_node.ASK,
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "resources": {"requests": {"cpu": "2" if claimed else "100m", "memory": "16Mi"}},
    }
    spec: dict[str, Any] = {
        "hostNetwork": True,
        "restartPolicy": "Never",
        "dnsPolicy": "Default",
        "enableServiceLinks": False,
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 1,
        "securityContext": {},
        "containers": [box],
    }
    if claimed:
        spec["resourceClaims"] = [{"name": "own", "resourceClaimName": name}]
        box["resources"]["claims"] = [{"name": "own"}]
    meta = {"name": name, "labels": {} if claimed else {"koordinator.sh/qosClass": "LS"}}
    uid = str(ask("POST", PODS, {"metadata": meta, "spec": spec})["metadata"]["uid"])
    if claimed:
        allocate(name, uid)
    return uid


def allocate(name: str, uid: str) -> None:
    """A claim for two CPUs of node 1 that a pod has."""
    share = {"driver": DRIVER, "pool": NODE, "device": "numa-1", "request": "cpus"}
    result = {**share, "consumedCapacity": {"cpu": "2"}}
    status = {
        "allocation": {"devices": {"results": [result]}},
        "reservedFor": [{"resource": "pods", "name": name, "uid": uid}],
    }
    ask("POST", CLAIMS, {"metadata": {"name": name}, "spec": {}})
    merge = "application/merge-patch+json"
    ask("PATCH", f"{CLAIMS}/{name}/status", {"status": status}, merge)


def bind(name: str) -> None:
    """Give a pod the node."""
    ask("POST", f"{PODS}/{name}/binding", {"target": {"kind": "Node", "name": NODE}})


@contextlib.contextmanager
def kubelet() -> Iterator[subprocess.Popen[bytes]]:
    """It runs; killed at the end."""
    who = (f"--hostname-override={NODE}", f"--node-ip={NODE_IP}")
    with kubelet_node.kubelet(KUBELET, f"--kubeconfig={WORK}/api/kubeconfig", *who) as process:
        yield process


def noted(event: str) -> int:
    """How often the agent has said something."""
    return (WORK / "agent.log").read_text().count(f'"dra_driver.{event}"')


def stands(process: subprocess.Popen[bytes]) -> bool:
    """Whether a signal has stopped it."""
    stat = pathlib.Path(f"/proc/{process.pid}/stat").read_text()
    return stat.rpartition(")")[2].split()[0] == "T"


def effective(*names: str) -> dict[str, str]:
    """The CPUs that count for containers that are there."""
    there = {}
    for name in names:
        with contextlib.suppress(ValueError, OSError):
            group = kubelet_node.group(name)
            there[name] = (group / "cpuset.cpus.effective").read_text().strip()
    return there


def live(
    agent: subprocess.Popen[bytes], kubelets: contextlib.ExitStack, step: str
) -> Iterator[tuple[str, Any]]:
    """The life of a pod with a claim, whose kubelet is killed at this step; what is seen of it."""
    make(step, claimed=True)
    known, before = noted("registered"), noted(step)
    if step in ENDS:
        bind(step)
        yield from seen_to_run(step)
    if step.endswith("preparing"):
        killed_agent.kill_before(ORDER, 1, signal.SIGSTOP)
    if step in ENDS:
        ask("DELETE", f"{PODS}/{step}")
    else:
        bind(step)
    reached = {
        "running": lambda: step in effective(step),
        **dict.fromkeys(("bound", "ending"), lambda: True),
        **dict.fromkeys(("preparing", "unpreparing"), lambda: stands(agent)),
    }
    deadline.until(reached.get(step, lambda: noted(step) > before), step)
    kubelets.close()
    ORDER.unlink(missing_ok=True)
    agent.send_signal(signal.SIGCONT)
    away: list[dict[str, str]] = []

    def is_back() -> bool:
        now = effective("ls", step)
        if now not in away:
            away.append(now)
        return noted("registered") > known

    kubelets.enter_context(kubelet())
    deadline.until(is_back, "another kubelet has the driver")
    yield "away", away
    if step in BEGINS:
        yield from seen_to_run(step)
        ask("DELETE", f"{PODS}/{step}")
    deadline.until(lambda: ask("GET", f"{PODS}/{step}") is None, f"{step} is gone")
    deadline.until(lambda: effective("ls") == {"ls": "1-7"}, "the CPUs afterwards")
    yield "after", effective("ls", step)


def seen_to_run(name: str) -> Iterator[tuple[str, Any]]:
    """The CPUs of its first act, and of all once it runs."""
    yield "first", kubelet_node.first(name)
    deadline.until(lambda: len(effective("ls", name)) == 2, "both run")
    yield "held", effective("ls", name)


def play(seen: dict[str, Any]) -> None:
    """One life after the other, beside a pod that is there all the time."""
    words = ("-m", "tests.kit.killed_agent", str(ORDER))
    with (
        playing.agent(WORK, yaml.safe_dump(CONFIG), words) as agent,
        contextlib.ExitStack() as kubelets,
    ):
        kubelets.enter_context(kubelet())
        deadline.until(lambda: noted("registered"), "the kubelet has the driver")
        make("ls", claimed=False)
        bind("ls")
        deadline.until(lambda: effective("ls") == {"ls": "1-7"}, "the other pod")
        for step in (*BEGINS, *ENDS):
            began = time.monotonic()
            seen["steps"][step] = seen["now"] = {}
            for what, facts in live(agent, kubelets, step):
                seen["now"][what] = facts
            seen["now"]["seconds"] = round(time.monotonic() - began)
        agent.terminate()
        seen["status"] = agent.wait(deadline.PATIENCE)
        seen["end"] = effective("ls")


def main() -> None:
    """One life of a node."""
    WORK.mkdir(parents=True)
    pathlib.Path("/etc/resolv.conf").touch()
    subprocess.run(["ip", "address", "add", f"{NODE_IP}/32", "dev", "lo"], check=True)
    server = apart.Apart(WORK / "api", ADDRESS)
    for name in ("tls.crt", "tls.key"):
        shutil.copy(KEYS / name, server.folder)
    server.kubeconfig(authority=KEYS / "ca.crt")
    with playing.told(WORK) as seen:
        seen["steps"] = {}
        server.start()
        try:
            with kubelet_node.runtime():
                play(seen)
        finally:
            server.kill()
            for log in (WORK / "kubelet.log", WORK / kubelet_node.RUNTIME / "log"):
                seen[str(log)] = log.read_text()[-9000:] if log.exists() else ""


if __name__ == "__main__":
    main()
