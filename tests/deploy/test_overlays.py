"""What each overlay becomes when it is built, here and by a kubectl that can.

Covers: that it builds, that what it adds fits the agent and the other manifests, that components go
together. Does not cover: a cluster that runs it.
"""

from __future__ import annotations

import functools
import itertools
import json
import ssl
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml

from koordlet.config import loader
from koordlet.kubeapi import kinds
from tests.deploy import overlays
from tests.deploy.documents import DEPLOY, documents, needed
from tests.kit import kustomize, needs

#: Those of the scheduler and of its certificates have no agent (``test_reporting_overlay``).
AGENTLESS = (
    "scheduler",
    "descheduler",
    "webhook",
    "overlays/webhook-certificates",
    "overlays/webhook-scraped",
    "overlays/reporting/scheduler",
    "overlays/reporting/certificates",
    "alerts/operator",
)
OVERLAYS = [path for path in overlays.BUILT if str(path.relative_to(DEPLOY)) not in AGENTLESS]
SCRAPED = DEPLOY / "overlays" / "scraped"
#: The first kubectl whose kustomize knows components; Debian's is 1.20.
_OLDEST = 21


@functools.cache
def kubectl_minor() -> int:
    """Which kubectl there is."""
    words = ["kubectl", "version", "--client", "-o", "json"]
    done = subprocess.run(words, capture_output=True, check=True, timeout=60)
    return int(json.loads(done.stdout)["clientVersion"]["minor"].rstrip("+"))


def by_name(manifests: Iterable[dict[str, Any]]) -> dict[tuple[str, str], dict[str, Any]]:
    """Manifests by kind and name: kustomize has an order of its own."""
    return {(document["kind"], document["metadata"]["name"]): document for document in manifests}


@needs.program("kubectl")
@pytest.mark.parametrize("folder", overlays.BUILT, ids=lambda path: str(path.relative_to(DEPLOY)))
def test_kubectl_builds_the_same(folder: Path) -> None:
    """What is looked at here is what ``kubectl apply -k`` sends."""
    if kubectl_minor() < _OLDEST:
        # CI has Debian's, which is older, unless the machine came with its makers'.
        pytest.skip("the kubectl of this machine knows no components (1.21 does)")
    words = ["kubectl", "kustomize", str(folder)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)

    assert done.returncode == 0, done.stderr
    assert by_name(document for document in yaml.safe_load_all(done.stdout) if document) == by_name(
        overlays.built(folder)
    )


@pytest.mark.parametrize(
    "chosen",
    [
        *itertools.combinations(overlays.COMPONENTS, 2),
        tuple(overlays.COMPONENTS),
        tuple(reversed(overlays.COMPONENTS)),
    ],
    ids="+".join,
)
def test_components_go_together(ram: Path, chosen: tuple[str, ...]) -> None:
    """Any two, and all of them in both orders: what one adds, the other one leaves."""
    (ram / "deploy").symlink_to(DEPLOY)
    folder = ram / "mine"
    folder.mkdir()
    body = {
        "kind": "Kustomization",
        "resources": ["../deploy/agent"],
        "components": [f"../deploy/components/{name}" for name in chosen],
    }
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(body))
    manifests = tuple(kustomize.build(folder))

    check(manifests)
    plain = parts(overlays.built(DEPLOY / "agent"))
    for name in chosen:
        alone = overlays.built(overlays.overlay_of(name))
        assert parts(alone) - plain <= parts(manifests)
        assert by_name(alone).keys() <= by_name(manifests).keys()


def parts(manifests: tuple[dict[str, Any], ...]) -> set[tuple[str, str, str]]:
    """Variables, volumes, ports and first containers of the agent."""
    pod, container = overlays.agent(manifests)
    named = {
        (kind, each["name"], "")
        for kind, where in (("volumes", pod), ("initContainers", pod), ("ports", container))
        for each in where.get(kind, ())
    }
    return named | {("env", name, value) for name, value in overlays.variables(container).items()}


@pytest.mark.parametrize("folder", OVERLAYS, ids=lambda path: str(path.relative_to(DEPLOY)))
def test_it_builds(folder: Path) -> None:
    """One agent whose variables are a configuration, mounts that have volumes, nothing twice."""
    check(overlays.built(folder))


def check(manifests: Iterable[dict[str, Any]]) -> None:
    """Check that manifests are whole."""
    manifests = tuple(manifests)
    pod, container = overlays.agent(manifests)
    names = [(o["kind"], o["metadata"].get("namespace"), o["metadata"]["name"]) for o in manifests]

    assert len(names) == len(set(names))
    assert loader.from_text(None, "", overlays.variables(container), {}).warnings == ()
    volumes = {each["name"] for each in pod["volumes"]}
    every = (*pod.get("initContainers", ()), container)
    assert volumes == {m["name"] for each in every for m in each["volumeMounts"]}
    assert {container["image"]} == {each["image"] for each in every}


def test_what_is_scraped_is_served() -> None:
    """Port, path, labels of both monitors are those of the agents; the probes are on loopback."""
    manifests = overlays.built(SCRAPED)
    pod, container = overlays.agent(manifests)
    config = loader.from_text(None, "", overlays.variables(container), {}).config.report.http
    (port,) = container["ports"]
    labels = overlays.manifest(manifests, "DaemonSet", "koordlet")["spec"]["template"]["metadata"][
        "labels"
    ]

    assert f"192.0.2.7:{port['containerPort']}" == config.secure.address
    service = overlays.manifest(manifests, "Service", "koordlet")
    assert service["spec"]["selector"].items() <= labels.items()
    assert [port["name"]] == [each["targetPort"] for each in service["spec"]["ports"]]
    monitor = overlays.manifest(manifests, "ServiceMonitor", "koordlet")["spec"]
    assert monitor["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    other = next(o for o in documents("components/scraped/pod-monitor.yaml") if "spec" in o)["spec"]
    assert other["selector"]["matchLabels"].items() <= labels.items()
    for each in (*monitor["endpoints"], *other["podMetricsEndpoints"]):
        assert (port["name"], "/metrics", "https") == (each["port"], each["path"], each["scheme"])
    for probe in ("startup", "readiness", "liveness"):
        asked = container[f"{probe}Probe"]["httpGet"]
        assert config.address == f"{asked['host']}:{asked['port']}"
    (maker,) = pod["initContainers"]
    files = {Path(word).name for word in maker["args"] if word.startswith("/tls/")}
    assert files == {Path(str(config.secure.certificate)).name, Path(str(config.secure.key)).name}


def test_who_may_ask_and_who_may_scrape() -> None:
    """The agents may make both reviews, and nothing else; a scraper may get the metrics."""
    manifests = overlays.built(SCRAPED)
    rules = overlays.manifest(manifests, "ClusterRole", "koordlet-reviews")["rules"]
    granted = {
        (g, r, v) for o in rules for g in o["apiGroups"] for r in o["resources"] for v in o["verbs"]
    }

    wanted = (kinds.TOKEN_REVIEWS, kinds.SUBJECT_ACCESS_REVIEWS)
    assert set().union(*(needed(kind, "create") for kind in wanted)) == granted
    binding = overlays.manifest(manifests, "ClusterRoleBinding", "koordlet-reviews")
    assert overlays.agent(manifests)[0]["serviceAccountName"] == binding["subjects"][0]["name"]
    (rule,) = overlays.manifest(manifests, "ClusterRole", "koordlet-metrics")["rules"]
    assert rule == {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}


def test_the_certificate_is_one_that_is_taken(ram: Path) -> None:
    """The words of the init container, run here: the agent's server takes what they make."""
    from koordlet.http import certificates

    (maker,) = overlays.agent(overlays.built(SCRAPED))[0]["initContainers"]
    words = [word.replace("/tls/", f"{ram}/") for word in (*maker["command"], *maker["args"])]
    subprocess.run(words, check=True, capture_output=True, timeout=60)

    taken = certificates.context(ram / "tls.crt", ram / "tls.key")

    assert isinstance(taken, ssl.SSLContext)


def test_taints_bring_one_verb_and_their_switch() -> None:
    """The role may patch nodes beside what it could before; the agents have an effect to write."""
    manifests = overlays.built(DEPLOY / "overlays" / "taints")
    rules = overlays.manifest(manifests, "ClusterRole", "koordlet")["rules"]
    before = overlays.manifest(overlays.built(DEPLOY / "agent"), "ClusterRole", "koordlet")["rules"]
    (added,) = [rule for rule in rules if rule not in before]

    assert {"apiGroups": [""], "resources": [kinds.NODES.plural], "verbs": ["patch"]} == added
    env = overlays.variables(overlays.agent(manifests)[1])
    name = "KOORDLET_REPORT__OBJECTS__TAINTS"
    assert env[name] == loader.from_text(None, "", env, {}).config.report.objects.taints
    # As the overlay itself says how to leave it.
    assert loader.from_text(None, "", {name: "null"}, {}).config.report.objects.taints is None


@pytest.mark.parametrize("overlay", ["side-by-side", "observe-side-by-side", "beside-koordinator"])
def test_koordinators_directory_in_run_stays_its_own(overlay: str) -> None:
    """Its agent unlinks whatever is at /run/koordlet/koordlet.sock; our gRPC does so at its end."""
    pod, container = overlays.agent(overlays.built(DEPLOY / "overlays" / overlay))
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    own = [v["hostPath"]["path"] for v in pod["volumes"] if mounts[v["name"]] == "/run/koordlet"]

    assert own == ["/run/koordlet-beside"]


def test_side_by_side_koordinators_port_stays_its_own() -> None:
    """Server and probes are at another one."""
    _, container = overlays.agent(overlays.built(DEPLOY / "overlays/side-by-side"))
    address = overlays.variables(container)["KOORDLET_REPORT__HTTP__ADDRESS"]
    asked = [container[f"{name}Probe"]["httpGet"] for name in ("startup", "readiness", "liveness")]

    assert address == "127.0.0.1:9416"
    assert {f"{probe['host']}:{probe['port']}" for probe in asked} == {address}
