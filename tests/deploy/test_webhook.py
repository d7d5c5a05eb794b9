"""The webhook as it is deployed: its rights, and how an API server finds it."""

from __future__ import annotations

from typing import Any

from koordlet import cli
from koordlet.kubeapi import kinds
from koordlet.model import quantity
from koordlet.scheduler.process import webhook
from tests.deploy.documents import allowed, documents, needed

FILE = "webhook.yaml"
WATCHED = (kinds.CLUSTER_COLOCATION_PROFILES, kinds.NAMESPACES, kinds.PRIORITY_CLASSES)


def only(kind: str, file: str = FILE) -> dict[str, Any]:
    """The only object of a kind."""
    (body,) = (document for document in documents(file) if document["kind"] == kind)
    return body


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
    certificate = only("Certificate", "overlays/webhook-certificates/certificates.yaml")
    assert certificate["spec"]["dnsNames"] == [f"{where['name']}.{where['namespace']}.svc"]
    (secret,) = (volume["secret"] for volume in deployment["spec"]["volumes"])
    assert secret["secretName"] == certificate["spec"]["secretName"]


def test_whoever_fills_all_its_connections_does_not_end_it() -> None:
    """Bodies that are still coming have half of its memory at most."""
    (container,) = only("Deployment")["spec"]["template"]["spec"]["containers"]
    memory = quantity.units(container["resources"]["limits"]["memory"])
    assert 2 * webhook.LIMITS.connections * webhook.LIMITS.body_bytes <= memory
