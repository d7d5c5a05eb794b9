"""Agent and scheduler of a cluster, as ``deploy/overlays/reporting`` starts them, in two networks.

Covers: arguments and variables of the built manifests, secrets and tokens where they mount them,
mutual TLS by the Service's name, the node by its token, rotation, HTTPS with a token.
Does not cover: cert-manager, kubelets, a cluster's DNS (a hosts file stands for it); the API server
is the one of the tests.
"""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from koordlet.kubeapi import kinds
from koordlet.scheduler.store import adapter
from tests.deploy import overlays, test_reporting_overlay
from tests.e2e import test_networks as networks
from tests.kit import needs
from tests.kit.apiserver import apart, pki

pytestmark = pytest.mark.e2e

_API = "192.0.2.1:6443"
_ACCOUNT = "/run/secrets/kubernetes.io/serviceaccount"
_SERVICE = "koordlet-scheduler.koordlet-system.svc"
_USER = {"username": "system:serviceaccount:koordlet-system:koordlet"}
_NODE = "authentication.kubernetes.io/node-name"


def review(node: str) -> dict[str, Any]:
    """What the API server says of the token of an agent's pod."""
    user = {**_USER, "extra": {_NODE: [node]}}
    return {"authenticated": True, "audiences": ["koordlet-scheduler"], "user": user}


class Stage:
    """The folders that stand for volumes, and both networks."""

    def __init__(self, folder: Path, wires: networks.Networks) -> None:
        self.folder, self.wires = folder, wires
        self.authority = pki.Authority(folder)
        api = folder / "api"
        self.api = apart.Apart(api, _API, prefix=("ip", "netns", "exec", wires.scheduler))
        for source, name in zip(
            self.authority.sign_for("api", "IP:192.0.2.1"), ("tls.crt", "tls.key"), strict=True
        ):
            shutil.copy(source, api / name)
        (api / "reviews.json").write_text(json.dumps({
            **{f"of-{node}": review(node) for node in ("n1", "n2")},
            "prometheus": {"authenticated": True, "user": {"username": "prometheus"},
                           "paths": ["/metrics"]},
            "somebody": {"authenticated": True, "user": {"username": "somebody"}},
        }))  # fmt: skip
        (folder / "hosts").write_text(f"127.0.0.1 localhost\n192.0.2.1 {_SERVICE}\n")
        self.token("of-n2")
        asyncio.run(self._nodes())

    async def _nodes(self) -> None:
        store = adapter.Store(self.api.store)
        await store.open()
        for node in ("n1", "n2"):
            await store.create(kinds.NODES, {"metadata": {"name": node}})
        await store.create(kinds.NAMESPACES, {"metadata": {"name": "kube-system"}})
        await store.close()

    def secret(self, name: str, names: list[str]) -> Path:
        """A secret as cert-manager fills it; called again, it is renewed."""
        where = self.folder / name
        where.mkdir(exist_ok=True)
        alternatives = ",".join(f"DNS:{dns_name}" for dns_name in names)
        certificate, key = self.authority.sign_for(f"{name}.new", alternatives)
        for source, file in (
            *((certificate, "tls.crt"), (key, "tls.key")),
            (self.authority.certificate, "ca.crt"),
        ):
            shutil.copy(source, where / f".{file}")
            (where / f".{file}").replace(where / file)
        return where

    def token(self, words: str) -> None:
        """What the kubelet puts into the agent's pod."""
        (self.folder / "token").mkdir(exist_ok=True)
        (self.folder / "token" / "token").write_text(words)

    @contextmanager
    def running(
        self, network: str, name: str, words: list[str], mounts: Mapping[str, Path],
        variables: Mapping[str, str],
    ) -> Iterator[networks.Running]:  # fmt: skip
        """A koordlet in a network, with mounts of its own, as a container has them."""
        account = self.folder / f"{name}-account"
        account.mkdir()
        (account / "token").write_text("secret")
        shutil.copy(self.authority.certificate, account / "ca.crt")
        every = {**mounts, _ACCOUNT: account}
        # ip netns exec has given the process mounts of its own.
        steps = ["mount -t tmpfs tmpfs /run", f"mount --bind {self.folder}/hosts /etc/hosts"]
        steps += [f"mkdir -p {to} && mount --bind {what} {to}" for to, what in every.items()]
        given = {"KUBERNETES_SERVICE_HOST": "192.0.2.1", "KUBERNETES_SERVICE_PORT": "6443"}
        own = shlex.join([sys.executable, "-m", "koordlet", *words])
        assigned = " ".join(f"{k}={shlex.quote(v)}" for k, v in {**given, **variables}.items())
        agent = networks.Running(
            network, self.folder / f"{name}.log", "sh", "-c",
            " && ".join([*steps, f"exec env {assigned} {own}"]), program=(),
        )  # fmt: skip
        with networks.stopped(agent):
            yield agent

    def asked(self, token: str, path: str = "/metrics") -> tuple[str, str]:
        """Status and body of the scheduler's HTTPS, asked from the agent's network."""
        words = ["ip", "netns", "exec", self.wires.agent, "curl", "-sS", "-w", "\n%{http_code}"]
        words += ["--cacert", str(self.authority.certificate)]
        words += ["--resolve", f"{_SERVICE}:9327:192.0.2.1", "-H", f"Authorization: Bearer {token}"]
        words += [f"https://{_SERVICE}:9327{path}"]
        done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=30)
        body, _, status = done.stdout.rpartition("\n")
        return status, body


@pytest.fixture
def stage(ram: Path) -> Iterator[Stage]:
    """Taken down again."""
    needs.unless(networks.why_not() or ("" if shutil.which("curl") else "needs curl"))
    wires = networks.Networks()
    made = Stage(ram, wires)
    try:
        made.api.start()
        yield made
    finally:
        made.api.kill()
        wires.close()


def _mounted(pod: dict[str, Any]) -> dict[str, str]:
    """Name of a volume to where the container has it."""
    (container,) = pod["containers"]
    return {each["name"]: each["mountPath"] for each in container["volumeMounts"]}


def test_as_the_manifests_say(stage: Stage) -> None:
    """Another node's token is refused; with its own the agent is heard; rotation is no restart."""
    built = overlays.built
    spec, container = test_reporting_overlay.pod(
        built(test_reporting_overlay.REPORTING / "scheduler")
    )
    mine = stage.secret("scheduler-tls", test_reporting_overlay.certificate(
        "koordlet-scheduler-tls")["dnsNames"])  # fmt: skip
    state = f"--state-dir={stage.folder / 'state'}"
    words = [re.sub(r"^--state-dir=.*", state, word) for word in container["args"]]
    agents = built(test_reporting_overlay.REPORTING / "agent")
    agent, inside = overlays.agent(agents)
    theirs = stage.secret("agent-tls", test_reporting_overlay.certificate(
        "koordlet-agent-tls")["dnsNames"])  # fmt: skip
    where = _mounted(agent)
    given = {**overlays.variables(inside), "KOORDLET_NODE__NAME": "n1"}
    given |= {"KOORDLET_REPORT__HTTP__ENABLED": "false", "KOORDLET_KUBELET__MODE": "off"}
    mounts = {where["scheduler-tls"]: theirs, where["scheduler-token"]: stage.folder / "token"}

    with (
        stage.running(
            stage.wires.scheduler, "scheduler", words, {_mounted(spec)["tls"]: mine}, {}
        ) as scheduler,
        stage.running(
            stage.wires.agent, "agent",
            [*inside["args"], "--observe", "--state-dir", str(stage.folder / "agent-state")],
            mounts, given,
        ) as told,
    ):  # fmt: skip
        scheduler.until("scheduler.leading")
        told.until("the token belongs to node n2, not n1")
        assert scheduler.said("scheduler.agent_heard") == 0

        stage.token("of-n1")
        scheduler.until("scheduler.agent_heard")
        assert [stage.asked(token)[0] for token in ("stranger", "somebody")] == ["401", "403"]
        status, numbers = stage.asked("prometheus")
        assert status == "200"
        assert 'scheduler_cache_size{type="reporting_nodes"} 1' in numbers

        # A certificate that names nobody of the list, then the right one again, renewed. With
        # the cable out at its far end an attempt waits; without a route many would fail at once,
        # and the next be half a minute later.
        stage.secret("agent-tls", ["stranger.example"])
        stage.wires.cable(stage.wires.scheduler, up=False)
        scheduler.until("scheduler.agent_silent")
        stage.wires.cable(stage.wires.scheduler, up=True)
        told.until("lacks the right to report")
        stage.secret("agent-tls", ["agents.koordlet-system.svc"])
        stage.secret("scheduler-tls", [_SERVICE])
        scheduler.until("scheduler.agent_heard", 2)
        assert told.stop() == 0
        assert scheduler.stop() == 0
