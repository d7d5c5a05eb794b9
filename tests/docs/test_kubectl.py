"""Every kubectl command of the documents, page by page and in their order, against an API server.

What is not run, and why, is a table here: those that need a kubelet or roles that are enforced.
"""

from __future__ import annotations

import asyncio
import re
import shlex
from pathlib import Path

import pytest
import yaml

from koordlet.kubeapi import kinds, objects
from tests.docs import commands
from tests.kit.apiserver import test_kubectl

pytestmark = test_kubectl.pytestmark

#: What a cluster has beside what koordlet itself speaks of.
_MORE = tuple(
    kinds.Kind(group, version, f"{name.lower()}{'' if name.endswith('ies') else 's'}", name)
    for group, version, *names in (
        ("", "v1", "Secret", "ServiceAccount"),
        ("apps", "v1", "DaemonSet", "Deployment"),
        ("rbac.authorization.k8s.io", "v1", "Role", "RoleBinding"),
        ("cert-manager.io", "v1", "Certificate", "Issuer"),
        ("monitoring.coreos.com", "v1", "PodMonitor", "ServiceMonitor"),
    )
    for name in names
)
_ADMISSION = ("admissionregistration.k8s.io", "v1")
_POLICY, _WEBHOOK = "ValidatingAdmissionPolicy", "MutatingWebhookConfiguration"
_RBAC = ("rbac.authorization.k8s.io", "v1")
_KINDS = (
    *_MORE,
    kinds.Kind(*_RBAC, "clusterroles", "ClusterRole", namespaced=False),
    kinds.Kind(*_RBAC, "clusterrolebindings", "ClusterRoleBinding", namespaced=False),
    kinds.Kind(*_ADMISSION, "validatingadmissionpolicies", _POLICY, namespaced=False),
    kinds.Kind(
        *_ADMISSION, "validatingadmissionpolicybindings", f"{_POLICY}Binding", namespaced=False
    ),
    kinds.Kind(*_ADMISSION, f"{_WEBHOOK.lower()}s", _WEBHOOK, namespaced=False),
    kinds.Kind("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy"),
    kinds.Kind("resource.k8s.io", "v1", "deviceclasses", "DeviceClass", namespaced=False),
)
_DAEMON_SETS = next(kind for kind in _MORE if kind.name == "DaemonSet")
_AGENTS = objects.Ref(_DAEMON_SETS, "koordlet", "koordlet-system")
DEFINITIONS = {
    "apiVersion": "v1",
    "kind": "List",
    "items": [
        yaml.safe_load(path.read_text()) for path in (commands.REPO / "deploy/crds").glob("*.yaml")
    ],
}
#: Words to the reason why what has them is not run here.
NOT_RUN = {
    "exec": "needs a kubelet; what it runs in the pod is run by test_commands",
    "can-i": "needs roles that are enforced: tests/deploy/test_roles.py reads them",
    "kustomize": "tests/deploy/test_overlays.py builds every folder",
}
#: Named in a sentence, without an object.
BARE = {
    ("get",), ("describe",), ("delete", "pod"), ("get", "-o", "yaml"), ("get", "-o", "json"),
    ("auth", "can-i"), ("apply", "-k"), ("patch",), ("create", "--dry-run=server"),
    ("apply", "--server-side"),
}  # fmt: skip


def shown() -> list[tuple[str, ...]]:
    """The words after kubectl, in the order of the pages; what spans two lines in one."""
    listed = []
    for page in commands.PAGES:
        text = re.sub(r"\n *(?=KOORDLET_|kube-system)", " ", page.read_text())
        for line in commands.lines_of(text):
            last = line.split("| ")[-1]
            if last.startswith("kubectl "):
                words = shlex.split(re.split(r"\s#", last)[0])[1:]
                listed.append(tuple("n1" if word == "NODE" else word for word in words))
    return listed


SHOWN = shown()
RUN = [words for words in SHOWN if words not in BARE and not NOT_RUN.keys() & set(words)]


async def _controller(kubectl: test_kubectl.Kubectl) -> None:
    """What a cluster does about the DaemonSet: its pods are as it says."""
    there = await kubectl.store.get(_AGENTS)
    status = {"observedGeneration": objects.metadata(there)["generation"]}
    numbers = ("desiredNumberScheduled", "updatedNumberScheduled", "numberAvailable")
    patch = objects.Merge({"status": {**status, **dict.fromkeys(numbers, 1)}})
    await kubectl.store.patch(_AGENTS, patch, subresource="status")


def test_they_run(ram: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From a checkout, one after the other; each does what it is for."""
    monkeypatch.chdir(commands.REPO)
    monkeypatch.setenv("EDITOR", "true")
    monkeypatch.setenv("TMPDIR", str(ram))
    outputs: dict[tuple[str, ...], str] = {}

    async def body() -> None:
        async with test_kubectl.opened(ram, *_KINDS) as kubectl:
            taint = {"key": "koordlet.io/memory-pressure", "effect": "NoSchedule"}
            node = {"metadata": {"name": "n1"}, "spec": {"taints": [taint]}}
            await kubectl.store.create(kinds.NODES, node)
            await kubectl.store.create(kinds.NAMESPACES, {"metadata": {"name": "kube-system"}})
            await kubectl.store.create(kinds.NODE_RESOURCE_TOPOLOGIES, {"metadata": {"name": "n1"}})
            for words in RUN:
                if "rollout" in words:
                    await _controller(kubectl)
                # This server has no OpenAPI, by which kubectl would look at fields before it asks.
                more = ["--validate=false"] if {"apply", "edit"} & set(words) else []
                manifest = DEFINITIONS if words[-1] == "-" else None
                outputs[words] = await kubectl(*words, *more, body=manifest)

    asyncio.run(body())
    assert outputs.keys() == set(RUN)
    text = "\n".join(outputs.values())
    for answer in ("successfully rolled out", "node/n1 labeled", "kind: NodeResourceTopology"):
        assert answer in text


def test_every_reason_is_needed() -> None:
    """Nothing is left out that no document shows, and enough is run."""
    every = {word for words in SHOWN for word in words}
    assert NOT_RUN.keys() <= every
    assert len(RUN) >= 14
