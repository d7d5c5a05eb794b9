"""Agents that report to the scheduler of a cluster: both manifests and the certificates agree.

Covers: every argument, variable, port, secret, name and audience that one side uses is the other
side's, and our program's. Does not cover: both programs with these words (``tests.e2e``).
"""

from __future__ import annotations

import argparse
from typing import Any

import pytest

from koordlet import cli
from koordlet.config import loader, schema
from koordlet.kubeapi import kinds
from tests.deploy import overlays
from tests.deploy.documents import DEPLOY, documents, needed

Documents = tuple[dict[str, Any], ...]
REPORTING = DEPLOY / "overlays" / "reporting"
NAMESPACE = "koordlet-system"


@pytest.fixture(scope="module")
def scheduler() -> Documents:
    """The scheduler's manifests."""
    return overlays.built(REPORTING / "scheduler")


@pytest.fixture(scope="module")
def agents() -> Documents:
    """The agents' manifests."""
    return overlays.built(REPORTING / "agent")


def pod(manifests: Documents) -> tuple[dict[str, Any], dict[str, Any]]:
    """The scheduler's pod and its container."""
    spec = overlays.manifest(manifests, "Deployment", "koordlet-scheduler")["spec"]["template"][
        "spec"
    ]
    (container,) = spec["containers"]
    return spec, container


def arguments(manifests: Documents) -> argparse.Namespace:
    """Its arguments, as our program takes them."""
    return cli.parser("scheduler").parse_args(pod(manifests)[1]["args"])


def configuration(manifests: Documents) -> schema.Config:
    """The agent's configuration."""
    return loader.from_text(None, "", overlays.variables(overlays.agent(manifests)[1]), {}).config


def test_tokens_of_the_agents_account_count(agents: Documents, scheduler: Documents) -> None:
    """The account that the scheduler takes is the one that the agents run as."""
    account = overlays.agent(agents)[0]["serviceAccountName"]

    assert [f"{NAMESPACE}/{account}"] == arguments(scheduler).agent_account


def test_variables_of_the_schedulers_service_do_not_end_an_agent(
    agents: Documents, scheduler: Documents
) -> None:
    """The kubelet gives each container the addresses of its namespace's Services, unless told.

    Such names begin as ours do, and an agent that reads an unknown one does not start.
    """
    (service,) = (o for o in scheduler if o["kind"] == "Service")
    prefix = service["metadata"]["name"].upper().replace("-", "_")
    links = {f"{prefix}_SERVICE_HOST": "10.96.0.7", f"{prefix}_PORT_9318_TCP_PORT": "9318"}
    spec, container = overlays.agent(agents)
    given = links if spec.get("enableServiceLinks", True) else {}

    assert service["metadata"]["namespace"] == NAMESPACE
    assert loader.from_text(None, "", {**given, **overlays.variables(container)}, {}).warnings == ()


def secrets(spec: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Where the secrets of a pod are mounted, and their volumes."""
    (container,) = spec["containers"]
    where = {each["name"]: each["mountPath"] for each in container["volumeMounts"]}
    return {where[each["name"]]: each["secret"] for each in spec["volumes"] if "secret" in each}


def certificate(name: str) -> dict[str, Any]:
    """What cert-manager is asked for, by the secret that it fills."""
    manifests = overlays.built(REPORTING / "certificates")
    every = (each["spec"] for each in manifests if each["kind"] == "Certificate")
    (spec,) = (each for each in every if each["secretName"] == name)
    return dict(spec)


def test_the_scheduler_starts_with_these_words(scheduler: Documents) -> None:
    """They are options of ours; the ports that they name are the container's and the Service's."""
    args = arguments(scheduler)
    ports = {each["name"]: each["containerPort"] for each in pod(scheduler)[1]["ports"]}

    assert args.command == "scheduler"
    assert [f"0.0.0.0:{ports['reports']}", f"0.0.0.0:{ports['https-metrics']}"] == [
        args.listen,
        args.https,
    ]
    service = overlays.manifest(scheduler, "Service", "koordlet-scheduler")["spec"]
    assert {(each["port"], ports[each["targetPort"]]) for each in service["ports"]} == {
        (number, number) for number in ports.values()
    }
    labels = overlays.manifest(scheduler, "Deployment", "koordlet-scheduler")["spec"]["template"][
        "metadata"
    ]
    assert service["selector"].items() <= labels["labels"].items()
    policy = overlays.manifest(scheduler, "NetworkPolicy", "koordlet-scheduler")["spec"]
    assert policy["podSelector"]["matchLabels"].items() <= labels["labels"].items()
    (way,) = policy["ingress"]
    assert {(each["port"], each["protocol"]) for each in way["ports"]} == {
        (number, "TCP") for number in ports.values()
    }


def test_the_agents_dial_it(scheduler: Documents, agents: Documents) -> None:
    """By the name and port of its Service, which its certificate bears, by the cluster's DNS."""
    config = configuration(agents).report.scheduler
    host, _, port = str(config.address).rpartition(":")
    service = overlays.manifest(scheduler, "Service", "koordlet-scheduler")
    name = service["metadata"]["name"]

    assert f"{name}.{NAMESPACE}.svc" == host
    assert port == arguments(scheduler).listen.rpartition(":")[2]
    assert overlays.agent(agents)[0]["dnsPolicy"] == "ClusterFirstWithHostNet"
    (secret,) = secrets(pod(scheduler)[0]).values()
    assert host in certificate(secret["secretName"])["dnsNames"]
    assert "server auth" in certificate(secret["secretName"])["usages"]


def test_certificates_are_where_they_are_looked_for(
    scheduler: Documents, agents: Documents
) -> None:
    """Both sides mount the secret that cert-manager fills; the agents' may be missing."""
    spec = pod(scheduler)[0]
    assert {arguments(scheduler).tls} == secrets(spec).keys()
    tls = configuration(agents).report.scheduler.tls
    ((where, secret),) = secrets(overlays.agent(agents)[0]).items()

    assert (f"{where}/tls.crt", f"{where}/tls.key", f"{where}/ca.crt") == (
        tls.certificate,
        tls.key,
        tls.authority,
    )
    assert secret["optional"] is True
    asked = certificate(secret["secretName"])
    assert "client auth" in asked["usages"]
    (mine,) = secrets(spec).values()
    assert asked["issuerRef"] == certificate(mine["secretName"])["issuerRef"]


def test_the_agents_are_let_in(scheduler: Documents, agents: Documents) -> None:
    """Their certificate's name may report and nothing else; their token is made for this."""
    args = arguments(scheduler)
    spec = overlays.agent(agents)[0]
    ((_, secret),) = secrets(spec).items()
    projected = [each for each in spec["volumes"] if "projected" in each]
    ((source,),) = (each["projected"]["sources"] for each in projected)
    where = {each["name"]: each["mountPath"] for each in overlays.agent(agents)[1]["volumeMounts"]}

    assert [(certificate(secret["secretName"])["dnsNames"][0], ("report",))] == args.client
    token = source["serviceAccountToken"]
    assert args.audience == token["audience"]
    assert (
        f"{where[projected[0]['name']]}/{token['path']}"
        == configuration(agents).report.scheduler.token
    )


def test_the_scheduler_may_ask(scheduler: Documents) -> None:
    """Both reviews, for its own account; a pod is read by the role that it has anyway."""
    (rule, other) = overlays.manifest(scheduler, "ClusterRole", "koordlet-scheduler-reviews")[
        "rules"
    ]
    granted = {
        (g, r, v) for o in (rule, other) for g in o["apiGroups"]
        for r in o["resources"] for v in o["verbs"]
    }  # fmt: skip
    wanted = (kinds.TOKEN_REVIEWS, kinds.SUBJECT_ACCESS_REVIEWS)

    assert set().union(*(needed(kind, "create") for kind in wanted)) == granted
    binding = overlays.manifest(scheduler, "ClusterRoleBinding", "koordlet-scheduler-reviews")
    (subject,) = binding["subjects"]
    assert pod(scheduler)[0]["serviceAccountName"] == subject["name"]
    assert binding["roleRef"]["name"] == "koordlet-scheduler-reviews"


def test_the_scheduler_is_scraped(scheduler: Documents) -> None:
    """Port, labels and the name in its certificate are those of the monitor."""
    monitor = overlays.manifest(scheduler, "ServiceMonitor", "koordlet-scheduler")["spec"]
    service = overlays.manifest(scheduler, "Service", "koordlet-scheduler")
    (point,) = monitor["endpoints"]
    (other,) = documents("overlays/reporting/scheduler/pod-monitor.yaml")
    (same,) = other["spec"]["podMetricsEndpoints"]

    assert monitor["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert other["spec"]["selector"]["matchLabels"] == service["spec"]["selector"]
    assert point["port"] in {each["name"] for each in service["spec"]["ports"]}
    for key in ("port", "path", "scheme", "interval", "tlsConfig"):
        assert same[key] == point[key]
    secret = point["tlsConfig"]["ca"]["secret"]["name"]
    assert {secret} == {each["secretName"] for each in secrets(pod(scheduler)[0]).values()}
    assert point["tlsConfig"]["serverName"] in certificate(secret)["dnsNames"]
    (rule,) = overlays.manifest(scheduler, "ClusterRole", "koordlet-scheduler-metrics")["rules"]
    assert rule == {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}


@pytest.mark.parametrize("folder", ["scheduler", "agent", "certificates"])
def test_everything_is_ours(folder: str) -> None:
    """In our namespace, under our names, nothing twice."""
    manifests = overlays.built(REPORTING / folder)
    names = [(each["kind"], each["metadata"]["name"]) for each in manifests]

    assert len(names) == len(set(names))
    spaces = {each["metadata"].get("namespace", NAMESPACE) for each in manifests}
    assert spaces <= {NAMESPACE, "kube-system"}
