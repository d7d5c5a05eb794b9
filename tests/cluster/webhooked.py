"""The webhook beside a lab's control plane: its role, its process, its registration, a pod.

Covers: what ``deploy/webhook`` brings, with an address of this machine in place of its Service.
Does not cover: what a test asks of it.
"""

from __future__ import annotations

import base64
import contextlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.deploy import overlays
from tests.deploy.documents import DEPLOY
from tests.kit import deadline, k8s_lab
from tests.kit.apiserver import pki

Body = dict[str, Any]
_GROUP = "config.koordinator.sh/v1alpha1"
_PROFILES = f"/apis/{_GROUP}/clustercolocationprofiles"
_REGISTRATIONS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
_ADDRESS = re.compile(r"https://[^/\s]+/mutate")
_CREATE, _DRY = ("create", "-f", "-", "-o", "json"), "--dry-run=server"


class WebhookedCluster:
    """A cluster with profiles, and the pod that they are for."""

    def __init__(self, lab: Any, folder: Path) -> None:
        self._lab, self._folder = lab, folder
        self.admin = k8s_lab.Admin(lab)
        self.authority, self.other = (pki.Authority(folder, name) for name in ("ours", "theirs"))
        documents = {document["kind"]: document for document in overlays.built(DEPLOY / "webhook")}
        self._registration = documents.pop("MutatingWebhookConfiguration")
        self._documents = [documents[kind] for kind in ("ClusterRole", "ClusterRoleBinding")]
        self._address = ""

    def install(self, *more: Body, profiles: Sequence[Body]) -> None:
        """The definition, the role, other objects, and profiles."""
        definition = DEPLOY / "crds" / "clustercolocationprofiles.config.koordinator.sh.yaml"
        for document in (*self._documents, yaml.safe_load(definition.read_text()), *more):
            self._apply(document)
        deadline.until(lambda: self.admin.ask("GET", _PROFILES)[0] == 200, "profiles are served")
        for profile in profiles:
            self.admin.need("POST", _PROFILES, profile)

    def _apply(self, document: Body) -> None:
        status, answer = k8s_lab.strict(self.admin, document, dry="")
        assert status in (200, 201), answer

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """The command, with the account of the manifests; it ends in order."""
        for file in self.authority.sign("webhook"):
            file.rename(self._folder / f"tls{file.suffix}")
        account = self._lab.service_account("koordlet-system", "koordlet-webhook")
        words = ["--kubeconfig", str(account), "--tls", str(self._folder)]
        words += ["--listen", "127.0.0.1:0"]
        with subprocess.Popen(
            [sys.executable, "-m", "koordlet", "webhook", *words], stderr=subprocess.PIPE, text=True
        ) as process:
            try:
                assert process.stderr is not None
                lines = iter(process.stderr.readline, "")
                [self._address] = next(filter(None, map(_ADDRESS.findall, lines)))
                yield
            finally:
                process.terminate()
        assert process.returncode == 0

    def register(self, authority: pki.Authority) -> None:
        """Tell the API server of it, and by whom its certificate must be."""
        [webhook] = self._registration["webhooks"]
        bundle = base64.b64encode(authority.certificate.read_bytes()).decode()
        webhook["clientConfig"] = {"url": self._address, "caBundle": bundle}
        webhook["timeoutSeconds"] = 30  # of a machine that is busy with other tests
        self._apply(self._registration)

    def created(self, pod: Body, *words: str) -> tuple[Body, str]:
        """A new pod as kubectl prints it, and what kubectl warns of."""
        done = subprocess.run(
            ["kubectl", f"--kubeconfig={self._lab.kubeconfig}", *_CREATE, *words],
            input=json.dumps(pod),
            capture_output=True,
            text=True,
            timeout=k8s_lab.PATIENCE,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout), done.stderr

    def changes(self, pod: Body) -> bool:
        """Whether a new pod gets labels."""
        labels = self.created(pod, _DRY)[0]["metadata"]["labels"]
        return bool(labels != pod["metadata"]["labels"])

    def close(self) -> None:
        """Take the registration away, and hang up."""
        self.admin.ask("DELETE", f"{_REGISTRATIONS}/{self._registration['metadata']['name']}")
        self.admin.close()


def profile(name: str, **spec: Any) -> Body:
    """A ClusterColocationProfile."""
    kind = {"apiVersion": _GROUP, "kind": "ClusterColocationProfile"}
    return {**kind, "metadata": {"name": name}, "spec": spec}
