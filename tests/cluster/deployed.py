"""The scheduler as it is deployed, beside the control plane of a lab, and what it asked for.

Covers: its manifests, account and token, replicas, pods of its profile, the audit log.
Does not cover: what a test does to them.
"""

from __future__ import annotations

import base64
import collections
import contextlib
import http.client
import json
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.deploy import overlays
from tests.deploy.documents import DEPLOY
from tests.kit import deadline, k8s_lab
from tests.oracle.objects import Body

SERVER = "kube-apiserver"
SPACE, ACCOUNT = "koordlet-system", "koordlet-scheduler"
USER = f"system:serviceaccount:{SPACE}:{ACCOUNT}"
PODS = "/api/v1/namespaces/default/pods"
_CREDENTIAL = "authentication.kubernetes.io/credential-id"
CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: true, leaseDuration: 4s, renewDeadline: 3s, retryPeriod: 1s}
profiles: [{schedulerName: koordlet-scheduler}]
"""


class Deployed:
    """A control plane with hollow nodes, and replicas of our scheduler."""

    def __init__(self, lab: Any, folder: Path, config: str = CONFIG) -> None:
        self.lab, self.folder = lab, folder
        self._config = config
        self.admin = k8s_lab.Admin(lab)
        self.replicas: dict[str, subprocess.Popen[bytes]] = {}
        #: What the audit log calls the tokens that each running process has had.
        self.tokens: dict[str, list[str]] = {}
        self._audit = AuditLog(lab, SPACE)
        self._pods = 0

    def install(self, nodes: int = 8) -> None:
        """What ``deploy/`` says, but for what runs pods; and so many nodes."""
        self._apply([*overlays.built(DEPLOY), *overlays.built(DEPLOY / "scheduler")])
        self.admin.hollow_nodes([k8s_lab.hollow(f"n{at}") for at in range(nodes)])
        (self.folder / "scheduler.yaml").write_text(self._config)

    def install_descheduler(self) -> None:
        """The same of the descheduler."""
        own = overlays.built(DEPLOY / "descheduler")
        self._apply([document for document in own if document["kind"] != "Namespace"])

    def _apply(self, documents: list[Body]) -> None:
        """Namespaces first; nothing that runs pods, or decides who may write."""
        apart = ("Deployment", "DaemonSet", "ValidatingAdmissionPolicy")
        for document in sorted(documents, key=lambda body: body["kind"] != "Namespace"):
            if not document["kind"].startswith(apart):
                status, answer = k8s_lab.strict(self.admin, document, dry="")
                assert status in (200, 201), answer

    def start(self, name: str) -> None:
        """One replica, with a token of its own."""
        kubeconfig = self.credentials(name, self.lab.service_account(SPACE, ACCOUNT))
        state = self.folder / f"{name}.state"
        words = ["--config", str(self.folder / "scheduler.yaml"), "--state-dir", str(state)]
        words += ["--kubeconfig", str(kubeconfig), "--http", "127.0.0.1:0"]
        with (self.folder / f"{name}.log").open("ab") as log:
            self.replicas[name] = subprocess.Popen(
                [sys.executable, "-m", "koordlet", "scheduler", *words], stderr=log
            )

    def credentials(self, name: str, account: Path) -> Path:
        """A kubeconfig with a file of its own for the token, and for the authority."""
        config = json.loads(account.read_text())
        user, server = config["users"][0]["user"], config["clusters"][0]["cluster"]
        self.tokens[name] = []
        self.give(name, user.pop("token"))
        user["tokenFile"] = str(self.folder / f"{name}.token")
        shutil.copyfile(self.lab.pki / "ca.crt", self.folder / "ca.crt")
        server["certificate-authority"] = str(self.folder / "ca.crt")
        kubeconfig = self.folder / f"{name}.kubeconfig"
        kubeconfig.write_text(json.dumps(config))
        return kubeconfig

    def give(self, name: str, token: str) -> None:
        """A replica's token, as a kubelet replaces it."""
        fresh = self.folder / f"{name}.token.new"
        fresh.write_text(token)
        fresh.rename(self.folder / f"{name}.token")
        self.tokens[name].append(identity(token))

    def kill(self, name: str) -> None:
        """End a replica at once, for good."""
        replica = self.replicas.pop(name)
        del self.tokens[name]
        replica.kill()
        replica.wait()

    def leader(self) -> str:
        """Which replica is ready: it holds the lease."""

        def ready() -> str:
            self.restart()
            return next((name for name in self.replicas if self._is_ready(name)), "")

        return deadline.until(ready, "somebody leads", seconds=60)

    def _is_ready(self, name: str) -> bool:
        # A replica that ended and was started again goes on in the log: the last address is its.
        addresses = re.findall(r"http://([^/]+)/", (self.folder / f"{name}.log").read_text())
        if not addresses:
            return False
        connection = http.client.HTTPConnection(addresses[-1], timeout=5)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == http.HTTPStatus.OK
        except OSError:
            return False
        finally:
            connection.close()

    @property
    def port(self) -> int:
        """Of the API server."""
        return int(self.lab.processes.state["ports"]["api"])

    def kill_server(self) -> None:
        """End the API server at once; its threads, and with them its port, end one by one."""
        self.lab.processes.stop(SERVER, signal.SIGKILL)
        listening(self.port).close()

    def serve(self) -> None:
        """Start the API server again, and wait until it is ready."""
        self.lab.processes.start(SERVER)
        self.admin.close()
        deadline.until(lambda: self.lab._answers("/readyz"), "the server is ready", seconds=90)

    def settled(self, since: int = 0) -> None:
        """Wait until each process has a watch of every kind, begun after so many audit events.

        What it watches is what any process of its account has ever watched.
        """

        def watching() -> bool:
            self.restart()
            events = self.audit()
            live = given(events[since:], "watch") - ended(events[since:])
            accounts = {token_of(event): event["user"]["username"] for event in events}
            kinds = collections.defaultdict(set)
            for token, kind in given(events, "watch"):
                kinds[accounts[token]].add(kind)
            return all(
                any((token, kind) in live for token in tokens)
                for tokens in self.tokens.values()
                for kind in set().union(*(kinds[accounts.get(token, "")] for token in tokens))
                or {""}
            )

        deadline.until(watching, "every process watches every kind", seconds=90)

    def create(self, count: int, scheduler: str, **more: object) -> list[str]:
        """Pods; their paths."""
        paths = []
        for _ in range(count):
            self._pods += 1
            name = f"p{self._pods}"
            body = pod(name, scheduler, **more)
            self.admin.need("POST", PODS, body)
            paths.append(f"{PODS}/{name}")
        return paths

    def bound(self, paths: list[str]) -> list[str]:
        """Their nodes, when each has one."""

        def nodes() -> list[str]:
            self.restart()
            names = [self.admin.need("GET", path)["spec"].get("nodeName", "") for path in paths]
            return names if all(names) else []

        return deadline.until(nodes, f"{len(paths)} pods are bound", seconds=60)

    def restart(self) -> None:
        """As a kubelet would: who loses the lease ends."""
        for name, replica in self.replicas.items():
            if replica.poll() is not None:
                self.start(name)

    def audit(self) -> list[Body]:
        """Every request of our accounts, a watch also when it begins."""
        return self._audit.read()

    def close(self) -> None:
        """End the replicas."""
        self.admin.close()
        for replica in self.replicas.values():
            replica.send_signal(signal.SIGCONT)
            replica.kill()
            replica.wait()


def pod(name: str, scheduler: str, **more: object) -> Body:
    """A small pod."""
    requests = {"requests": {"cpu": "100m", "memory": "64Mi"}}
    spec = {"containers": [{"name": "main", "image": "app", "resources": requests}], **more}
    return {
        "metadata": {"name": name, "labels": {"app": "x"}},
        "spec": {**spec, "schedulerName": scheduler},
    }


def identity(token: str) -> str:
    """What the audit log calls a token."""
    payload = token.split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    return f"JTI={claims['jti']}"


def listening(port: int) -> socket.socket:
    """A listener at a port of loopback, as soon as it is free."""

    def bound() -> socket.socket | None:
        with contextlib.suppress(OSError):
            return socket.create_server(("127.0.0.1", port), backlog=128)
        return None

    return deadline.until(bound, "the port is free")


class AuditLog:
    """What the accounts of a namespace have asked for, or one user."""

    def __init__(self, lab: Any, space: str = "", *, user: str = "") -> None:
        self._path = Path(lab.folder, "log", "audit.log")
        name = f'{user}"' if user else f"system:serviceaccount:{space}:"
        self._account = f'"username":"{name}'
        self._offset = 0
        self._events: list[Body] = []

    def read(self) -> list[Body]:
        """All of it, in the order in which it was answered."""
        with self._path.open("rb") as log:
            log.seek(self._offset)
            # The server may be writing the last line.
            lines, _, _ = log.read().rpartition(b"\n")
        self._offset += len(lines) + bool(lines)
        several = [line for line in lines.decode().splitlines() if self._account in line]
        self._events += map(json.loads, several)
        return list(self._events)


def token_of(event: Body) -> str:
    """The token that a request came with."""
    return str(event["user"]["extra"][_CREDENTIAL][0])


def given(events: Iterable[Body], verb: str) -> collections.Counter[tuple[str, str]]:
    """How often this was asked for and granted, by token and kind; a watch once it began."""
    stage = "ResponseStarted" if verb == "watch" else "ResponseComplete"
    return _counted(events, verb, stage)


def several_lists(events: Iterable[Body]) -> dict[tuple[str, str], int]:
    """Whose lists of a kind are more than a fault costs: one, and a second for few of the kinds.

    A server that has just started may give a list, and then, when its cache is there, call that
    list's revision too old.
    """
    lists = given(events, "list")
    twice = {key: count for key, count in lists.items() if count > 1}
    return {} if len(twice) <= len(lists) / 4 and max(lists.values(), default=0) <= 2 else twice


def ended(events: Iterable[Body]) -> collections.Counter[tuple[str, str]]:
    """How many watches came to an end, by token and kind."""
    return _counted(events, "watch", "ResponseComplete")


def _counted(events: Iterable[Body], verb: str, stage: str) -> collections.Counter[tuple[str, str]]:
    return collections.Counter(
        (token_of(event), event["objectRef"]["resource"])
        for event in events
        if (event["verb"], event["stage"]) == (verb, stage)
        and event["responseStatus"]["code"] == http.HTTPStatus.OK
    )
