"""The webhook as it is deployed: its rights, and how an API server finds it."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet import cli
from koordlet.kubeapi import kinds
from koordlet.model import quantity
from koordlet.scheduler.process import webhook
from tests.deploy.documents import allowed, documents, needed

FILE, CERTIFICATES = "webhook.yaml", "overlays/webhook-certificates/certificates.yaml"
WATCHED = (kinds.CLUSTER_COLOCATION_PROFILES, kinds.NAMESPACES, kinds.PRIORITY_CLASSES)


def of_kind(kind: str, file: str = FILE) -> list[dict[str, Any]]:
    """The objects of a kind."""
    return [document for document in documents(file) if document["kind"] == kind]


def only(kind: str) -> dict[str, Any]:
    """The only object of a kind."""
    (body,) = of_kind(kind)
    return body


def certificates() -> dict[str, dict[str, Any]]:
    """What cert-manager is asked for, by name."""
    return {body["metadata"]["name"]: body for body in of_kind("Certificate", CERTIFICATES)}


def test_its_role_is_what_it_watches() -> None:
    """It changes nothing itself: the API server does."""
    assert allowed(FILE) == set().union(*(needed(kind, "list watch") for kind in WATCHED))


def test_an_api_server_finds_it_and_makes_pods_without_it() -> None:
    """Service, port and certificate are one name; whatever fails costs three seconds at most."""
    (registered,) = only("MutatingWebhookConfiguration")["webhooks"]
    service = only("Service")
    deployment = only("Deployment")["spec"]["template"]
    (container,) = deployment["spec"]["containers"]
    arguments = cli.parser("webhook").parse_args(container["args"])
    (listening,) = container["ports"]
    where = registered["clientConfig"]["service"]
    (port,) = service["spec"]["ports"]

    assert (where["name"], where["namespace"]) == (
        service["metadata"]["name"],
        service["metadata"]["namespace"],
    )
    assert (where["port"], port["targetPort"]) == (port["port"], listening["name"])
    assert service["spec"]["selector"] == deployment["metadata"]["labels"]
    assert arguments.listen.endswith(f":{listening['containerPort']}")
    assert (registered["failurePolicy"], registered["timeoutSeconds"]) == ("Ignore", 3)
    assert registered["sideEffects"] == "None"
    certificate = certificates()["koordlet-webhook"]
    assert certificate["spec"]["dnsNames"] == [f"{where['name']}.{where['namespace']}.svc"]
    (secret,) = (volume["secret"] for volume in deployment["spec"]["volumes"])
    assert secret["secretName"] == certificate["spec"]["secretName"]


def test_a_renewed_certificate_is_of_the_authority_that_api_servers_know() -> None:
    """They hear of an authority a while after it: it is another one than what is renewed."""
    every = certificates()
    issuers = {body["metadata"]["name"]: body["spec"] for body in of_kind("Issuer", CERTIFICATES)}
    served = every["koordlet-webhook"]["spec"]
    notes = only("MutatingWebhookConfiguration")["metadata"]["annotations"]
    space, _, name = notes["cert-manager.io/inject-ca-from"].partition("/")
    authority = every[name]
    assert authority["metadata"]["namespace"] == space
    assert issuers[served["issuerRef"]["name"]] == {
        "ca": {"secretName": authority["spec"]["secretName"]}
    }
    assert authority["spec"]["isCA"] is True
    assert authority["spec"]["privateKey"]["rotationPolicy"] == "Never"
    assert issuers[authority["spec"]["issuerRef"]["name"]] == {"selfSigned": {}}
    assert not served.get("isCA")


@pytest.mark.parametrize(
    ("file", "endpoints"),
    [("service-monitor.yaml", "endpoints"), ("pod-monitor.yaml", "podMetricsEndpoints")],
)
def test_prometheus_scrapes_each_replica_by_the_name_in_its_certificate(
    file: str, endpoints: str
) -> None:
    """A monitor of Services or one of pods: port, labels, name and authority are the webhook's."""
    (monitor,) = documents(f"overlays/webhook-scraped/{file}")
    service, deployment = only("Service"), only("Deployment")["spec"]["template"]
    (container,) = deployment["spec"]["containers"]
    wanted = monitor["spec"]["selector"]["matchLabels"]
    (point,) = monitor["spec"][endpoints]
    certificate = certificates()["koordlet-webhook"]["spec"]

    for labelled, ports in (
        (service["metadata"], service["spec"]["ports"]),
        (deployment["metadata"], container["ports"]),
    ):
        assert wanted.items() <= labelled["labels"].items()
        assert point["port"] in {port["name"] for port in ports}
    assert (point["path"], point["scheme"]) == ("/metrics", "https")
    assert point["tlsConfig"]["serverName"] in certificate["dnsNames"]
    assert point["tlsConfig"]["ca"]["secret"] == {
        "name": certificate["secretName"],
        "key": "ca.crt",
    }


def test_a_drain_leaves_one_that_answers_and_is_never_stopped() -> None:
    """One at a time, whatever the replicas are; who is not ready may always go."""
    deployment, budget = only("Deployment")["spec"], only("PodDisruptionBudget")["spec"]
    assert deployment["replicas"] > 1
    assert budget == {
        "maxUnavailable": 1,
        "unhealthyPodEvictionPolicy": "AlwaysAllow",
        "selector": deployment["selector"],
    }


def test_whoever_fills_all_its_connections_does_not_end_it() -> None:
    """Bodies that are still coming have half of its memory at most."""
    (container,) = only("Deployment")["spec"]["template"]["spec"]["containers"]
    memory = quantity.units(container["resources"]["limits"]["memory"])
    assert 2 * webhook.LIMITS.connections * webhook.LIMITS.body_bytes <= memory
