"""The values of the chart: each with its meaning, and its default where a manifest has one.

Covers: the list, the places in manifests that a value takes, ``values.yaml`` and its schema.
Does not cover: components, each of which is a value by its name (``chart``).
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from koordlet.config import schema
from koordlet.model.record import dataclass
from tools.deploy import template

#: Kind and name of a manifest, and the way to a place in it.
Place = tuple[str, str, tuple[str | int, ...]]
_POD = ("spec", "template", "spec")
_BOX = (*_POD, "containers", 0)
_AGENT, _SCHEDULER = ("DaemonSet", "koordlet"), ("Deployment", "koordlet-scheduler")
_DESCHEDULER = ("Deployment", "koordlet-descheduler")
_WEBHOOK = ("Deployment", "koordlet-webhook")


@dataclass(frozen=True, slots=True)
class Value:
    """One of them; without a place ``default`` is written here."""

    key: str
    meaning: str
    place: Place | None = None
    default: Any = None
    #: What a template writes at the place; a reference to the value, where it is not said.
    written: Any = None


VALUES = (
    Value("image.repository", "The image of all programs.", default="koordlet"),
    Value("image.tag", "Empty: the version of the chart.", default=""),
    Value("image.digest", "sha256:...; where it is set, the tag is not used.", default=""),
    Value("image.pullPolicy", "", default="IfNotPresent"),
    Value("imagePullSecrets", "", default=[]),
    Value(
        "suspend",
        "Switches the whole fleet off: every agent restores what it wrote, and only observes.",
        default=False,
    ),
    Value("agent.enabled", "The DaemonSet.", default=True),
    Value(
        "agent.config",
        "The agents' configuration; docs/configuration.md has every key.",
        ("ConfigMap", "koordlet", ("data", "config.yaml")),
        written=template.Block('include "koordlet.config" (list $ $overlay)', text=True),
    ),
    Value(
        "agent.admission",
        "Binds what an agent may write to its own node. Needs Kubernetes 1.30.",
        default=True,
    ),
    Value("agent.resources", "", (*_AGENT, (*_BOX, "resources"))),
    Value(
        "agent.nodeSelector",
        "",
        (*_AGENT, (*_POD, "nodeSelector")),
        written=template.Block("$selector"),
    ),
    Value("agent.tolerations", "", (*_AGENT, (*_POD, "tolerations"))),
    Value("agent.priorityClassName", "", (*_AGENT, (*_POD, "priorityClassName"))),
    Value("agent.updateStrategy", "", (*_AGENT, ("spec", "updateStrategy"))),
    Value(
        "agent.onStop",
        "handover: limits stay for the next agent. restore: before you uninstall.",
        (*_AGENT, (*_BOX, "env", 1, "value")),
    ),
    Value(
        "agent.kubeletDirectory",
        "Of the nodes: /var/lib/k0s/kubelet with k0s, "
        "/var/snap/microk8s/common/var/lib/kubelet with MicroK8s.",
        default="/var/lib/kubelet",
    ),
    Value(
        "pools.label",
        "A node belongs to the pool that its label of this key names.",
        default="koordlet.io/pool",
    ),
    Value(
        "pools.configs",
        "Pool to what its agents' configuration has beside agent.config: "
        "{canary: {mode: enforce}}. Each pool is a DaemonSet of its own.",
        default={},
    ),
    Value(
        "rbac.evict",
        "Agents may evict pods over the API. Without: set eviction.by to local.",
        default=True,
    ),
    Value("rbac.devices", "Agents may write Device objects.", default=True),
    Value("scheduler.enabled", "", default=False),
    Value("scheduler.replicas", "", (*_SCHEDULER, ("spec", "replicas"))),
    Value("scheduler.resources", "", (*_SCHEDULER, (*_BOX, "resources"))),
    Value("scheduler.nodeSelector", "", (*_SCHEDULER, (*_POD, "nodeSelector"))),
    Value("scheduler.tolerations", "", (*_SCHEDULER, (*_POD, "tolerations")), default=[]),
    Value("descheduler.enabled", "", default=False),
    Value(
        "descheduler.policy",
        "Its policy; it acts where dryRun is false (docs/descheduler.md).",
        ("ConfigMap", "koordlet-descheduler", ("data", "policy.yaml")),
        written=template.Block("toYaml $.Values.descheduler.policy", text=True),
    ),
    Value("descheduler.replicas", "", (*_DESCHEDULER, ("spec", "replicas"))),
    Value("descheduler.resources", "", (*_DESCHEDULER, (*_BOX, "resources"))),
    Value("descheduler.nodeSelector", "", (*_DESCHEDULER, (*_POD, "nodeSelector"))),
    Value("descheduler.tolerations", "", (*_DESCHEDULER, (*_POD, "tolerations")), default=[]),
    Value("webhook.enabled", "ClusterColocationProfiles (docs/profiles.md).", default=False),
    Value(
        "webhook.caBundle",
        "Authority of its certificate, as base64. Empty: cert-manager writes it.",
        (
            "MutatingWebhookConfiguration",
            "koordlet-webhook",
            ("webhooks", 0, "clientConfig", "caBundle"),
        ),
        default="",
        written=template.If(
            "$.Values.webhook.caBundle", template.Text("$.Values.webhook.caBundle")
        ),
    ),
    Value("webhook.replicas", "", (*_WEBHOOK, ("spec", "replicas"))),
    Value("webhook.resources", "", (*_WEBHOOK, (*_BOX, "resources"))),
    Value("webhook.nodeSelector", "", (*_WEBHOOK, (*_POD, "nodeSelector"))),
    Value("webhook.tolerations", "", (*_WEBHOOK, (*_POD, "tolerations")), default=[]),
    Value(
        "crds.install",
        "Definitions that somebody else installed stay as they are.",
        default=True,
    ),
    Value(
        "crds.keep",
        "false: uninstalling removes the definitions, with every Reservation of the cluster.",
        default=True,
    ),
    Value(
        "tls.certManager",
        "cert-manager makes the secrets of components.reporting and of the webhook.",
        default=False,
    ),
    Value("tls.schedulerSecret", "", default="koordlet-scheduler-tls"),
    Value("tls.agentSecret", "", default="koordlet-agent-tls"),
    Value("tls.webhookSecret", "", default="koordlet-webhook-tls"),
    Value(
        "monitoring.podMonitor",
        "With components.scraped: a PodMonitor in place of Service and ServiceMonitor.",
        default=False,
    ),
    Value("monitoring.alerts", "PrometheusRules of deploy/alerts.", default=False),
    Value(
        "monitoring.site",
        "Where you serve the site of the documents: alerts lead to its runbooks.",
        default="https://koordlet.example",
    ),
    Value("monitoring.dashboards", "ConfigMaps for Grafana's sidecar.", default=False),
    Value(
        "rollout.prometheus",
        "Where a Prometheus answers. Set: an upgrade fails while an alert of koordlet fires, and "
        "`helm upgrade --rollback-on-failure` takes it back.",
        default="",
    ),
    Value(
        "rollout.seconds",
        "How long alerts are watched once agents run their new configuration.",
        default=600,
    ),
)
_HEAD = """\
# Made by python -m tools.deploy.chart: the defaults are those of the manifests in deploy/.
"""


def defaults(documents: list[dict[str, Any]], components: Mapping[str, str]) -> dict[str, Any]:
    """Key to default, those of components with their first sentence among them."""
    chosen: dict[str, Any] = {}
    for value in VALUES:
        at = value.place
        chosen[value.key] = value.default if at is None else _taken(value, at, documents)
    return chosen | {f"components.{name}": False for name in components}


def _taken(value: Value, place: Place, documents: list[dict[str, Any]]) -> Any:
    """What the manifest has at the place, where the reference to the value is from then on."""
    kind, name, (*way, last) = place
    [manifest] = (d for d in documents if (d["kind"], d["metadata"]["name"]) == (kind, name))
    document: Any = manifest
    for step in way:
        document = document[step]
    there = document.get(last, value.default)
    reference = f"$.Values.{value.key}"
    if value.written is not None:
        document[last] = value.written
    elif isinstance(there, dict | list):
        document[last] = template.Block(reference, optional=not there)
    else:
        document[last] = template.Text(reference)
    is_text = isinstance(document[last], template.Block) and document[last].text
    return yaml.safe_load(there) if is_text else there


def text(defaults_: Mapping[str, Any], components: Mapping[str, str]) -> str:
    """``values.yaml``."""
    meanings = {value.key: value.meaning for value in VALUES}
    meanings |= {f"components.{name}": meaning for name, meaning in components.items()}
    return _HEAD + "\n".join(_lines(defaults_, meanings)) + "\n"


def _lines(defaults_: Mapping[str, Any], meanings: Mapping[str, str]) -> Iterator[str]:
    section = ""
    for key, default in defaults_.items():
        above, _, last = key.rpartition(".")
        if above != section and above:
            yield f"\n{above}:"
        section = above
        pad = "  " if above else ""
        yield from (f"{pad}# {line}" for line in textwrap.wrap(meanings[key], 94))
        yield from template.lines({last: default}, len(pad))


_TYPES: dict[type, str] = {
    bool: "boolean",
    int: "integer",
    str: "string",
    list: "array",
    dict: "object",
}


def schema_text(defaults_: Mapping[str, Any]) -> str:
    """``values.schema.json``: a key that does not exist is an error, and so is another type."""
    root = _object()
    # Values that charts above this one share with all below them.
    root["properties"]["global"] = {"type": "object"}
    for key, default in defaults_.items():
        above, _, last = key.rpartition(".")
        place = root["properties"].setdefault(above, _object()) if above else root
        place["properties"][last] = {"type": _TYPES[type(default)]}
    root["properties"]["agent"]["properties"]["config"] = _CONFIG
    root["properties"]["pools"]["properties"]["configs"]["additionalProperties"] = _CONFIG
    root["properties"]["rollout"]["properties"]["seconds"]["minimum"] = 1
    draft = "http://json-schema.org/draft-07/schema#"
    body = {"$schema": draft, "definitions": _configuration(), **root}
    return json.dumps(body, indent=1) + "\n"


_CONFIG = {"$ref": "#/definitions/Config"}


def _configuration() -> dict[str, Any]:
    """The schema of the agents' configuration, for the definitions of another."""
    whole = schema.json_schema()
    named = {**whole.pop("$defs"), "Config": whole}
    return {name: _without_words(node) for name, node in named.items()}


def _without_words(node: dict[str, Any]) -> dict[str, Any]:
    """What a schema decides, without what it tells people."""
    kept = {key: value for key, value in node.items() if key not in _WORDS}
    if "$ref" in kept:
        kept["$ref"] = kept["$ref"].replace("#/$defs/", "#/definitions/")
    for key in ("items", "additionalProperties"):
        if isinstance(kept.get(key), dict):
            kept[key] = _without_words(kept[key])
    if "anyOf" in kept:
        kept["anyOf"] = [_without_words(either) for either in kept["anyOf"]]
    if "properties" in kept:
        below = kept["properties"].items()
        kept["properties"] = {name: _without_words(value) for name, value in below}
    if booleans := [_YAML_1_1[word] for word in kept.get("enum", ()) if word in _YAML_1_1]:
        del kept["type"]
        kept["enum"] = [*kept["enum"], *booleans]
    if kept.get("type") in ("object", "array"):
        # What a heading alone is: agents take it for an empty section, list or map.
        kept["type"] = [kept["type"], "null"]
    return kept


_WORDS = ("default", "description", "examples", "title")
#: Helm reads values as YAML 1.1, which makes booleans of these; the agents take both.
_YAML_1_1 = {"on": True, "off": False}


def _object() -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "properties": {}}
