"""What each overlay becomes when it is built: by kubectl where it is installed.

Covers: that it builds, that what it adds fits the agent and the other manifests.
Does not cover: a cluster that runs it.
"""

from __future__ import annotations

import functools
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from koordlet.config import loader
from koordlet.model import kinds
from tests.deploy.documents import DEPLOY, documents, needed

#: Those of the scheduler and of its certificates have no agent (``test_reporting_overlay``).
AGENTLESS = ("scheduler", "overlays/reporting/scheduler", "overlays/reporting/certificates")
OVERLAYS = sorted(
    path.parent
    for path in DEPLOY.rglob("kustomization.yaml")
    if str(path.parent.relative_to(DEPLOY)) not in AGENTLESS
)
SCRAPED = DEPLOY / "overlays" / "scraped"


@functools.cache
def built(folder: Path) -> tuple[dict[str, Any], ...]:
    """The manifests that ``kubectl kustomize`` makes of it."""
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")
    done = subprocess.run(
        ["kubectl", "kustomize", str(folder)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return tuple(one for one in yaml.safe_load_all(done.stdout) if one)


def one(found: tuple[dict[str, Any], ...], kind: str, name: str) -> dict[str, Any]:
    """The manifest of that kind and name."""
    (it,) = (o for o in found if (o["kind"], o["metadata"]["name"]) == (kind, name))
    return it


def agent(found: tuple[dict[str, Any], ...]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The agent's pod and its container."""
    pod = one(found, "DaemonSet", "koordlet")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    return pod, container


def variables(container: dict[str, Any]) -> dict[str, str]:
    """The environment as the kubelet makes it; what a cluster fills in has a made-up value."""
    found: dict[str, str] = {}
    for each in container["env"]:
        value = str(each.get("value", "192.0.2.7"))
        for name, known in found.items():
            value = value.replace(f"$({name})", known)
        found[each["name"]] = value
    return found


@pytest.mark.parametrize("folder", OVERLAYS, ids=lambda path: str(path.relative_to(DEPLOY)))
def test_it_builds(folder: Path) -> None:
    """One agent whose variables are a configuration, mounts that have volumes, nothing twice."""
    found = built(folder)
    pod, container = agent(found)
    names = [(o["kind"], o["metadata"].get("namespace"), o["metadata"]["name"]) for o in found]

    assert len(names) == len(set(names))
    assert () == loader.from_text(None, "", variables(container), {}).warnings
    volumes = {each["name"] for each in pod["volumes"]}
    every = (*pod.get("initContainers", ()), container)
    assert volumes == {m["name"] for each in every for m in each["volumeMounts"]}
    assert {container["image"]} == {each["image"] for each in every}


def test_what_is_scraped_is_served() -> None:
    """Port, path, labels of both monitors are those of the agents; the probes are on loopback."""
    found = built(SCRAPED)
    pod, container = agent(found)
    config = loader.from_text(None, "", variables(container), {}).config.report.http
    (port,) = container["ports"]
    labels = one(found, "DaemonSet", "koordlet")["spec"]["template"]["metadata"]["labels"]

    assert f"192.0.2.7:{port['containerPort']}" == config.secure.address
    service = one(found, "Service", "koordlet")
    assert service["spec"]["selector"].items() <= labels.items()
    assert [port["name"]] == [each["targetPort"] for each in service["spec"]["ports"]]
    monitor = one(found, "ServiceMonitor", "koordlet")["spec"]
    assert monitor["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    other = next(o for o in documents("overlays/scraped/pod-monitor.yaml") if "spec" in o)["spec"]
    assert other["selector"]["matchLabels"].items() <= labels.items()
    for each in (*monitor["endpoints"], *other["podMetricsEndpoints"]):
        assert (port["name"], "/metrics", "https") == (each["port"], each["path"], each["scheme"])
    for probe in ("startup", "readiness", "liveness"):
        asked = container[f"{probe}Probe"]["httpGet"]
        assert config.address == f"{asked['host']}:{asked['port']}"
    (made,) = pod["initContainers"]
    files = {Path(word).name for word in made["args"] if word.startswith("/tls/")}
    assert files == {Path(str(config.secure.certificate)).name, Path(str(config.secure.key)).name}


def test_who_may_ask_and_who_may_scrape() -> None:
    """The agents may make both reviews, and nothing else; a scraper may get the metrics."""
    found = built(SCRAPED)
    rules = one(found, "ClusterRole", "koordlet-reviews")["rules"]
    given = {
        (g, r, v) for o in rules for g in o["apiGroups"] for r in o["resources"] for v in o["verbs"]
    }

    wanted = (kinds.TOKEN_REVIEWS, kinds.SUBJECT_ACCESS_REVIEWS)
    assert set().union(*(needed(kind, "create") for kind in wanted)) == given
    binding = one(found, "ClusterRoleBinding", "koordlet-reviews")
    assert agent(found)[0]["serviceAccountName"] == binding["subjects"][0]["name"]
    (rule,) = one(found, "ClusterRole", "koordlet-metrics")["rules"]
    assert {"nonResourceURLs": ["/metrics"], "verbs": ["get"]} == rule


def test_the_certificate_is_one_that_is_taken(ram: Path) -> None:
    """The words of the init container, run here: the agent's server takes what they make."""
    from koordlet.http import certificates

    (made,) = agent(built(SCRAPED))[0]["initContainers"]
    words = [word.replace("/tls/", f"{ram}/") for word in (*made["command"], *made["args"])]
    subprocess.run(words, check=True, capture_output=True, timeout=60)

    assert 0 == certificates.Certificate(ram / "tls.crt", ram / "tls.key").reloads


def test_taints_bring_one_verb_and_their_switch() -> None:
    """The role may patch nodes beside what it could before; the agents have an effect to write."""
    found = built(DEPLOY / "overlays" / "taints")
    rules = one(found, "ClusterRole", "koordlet")["rules"]
    before = one(built(DEPLOY / "agent"), "ClusterRole", "koordlet")["rules"]
    (added,) = [rule for rule in rules if rule not in before]

    assert {"apiGroups": [""], "resources": [kinds.NODES.plural], "verbs": ["patch"]} == added
    env = variables(agent(found)[1])
    name = "KOORDLET_REPORT__OBJECTS__TAINTS"
    assert env[name] == loader.from_text(None, "", env, {}).config.report.objects.taints
    # As the overlay itself says how to leave it.
    assert loader.from_text(None, "", {name: "null"}, {}).config.report.objects.taints is None
