"""The Helm chart, made from the manifests that kustomize builds: one source for both.

Covers: ``python -m tools.deploy.chart`` writes what is generated below ``deploy/chart``;
``--check`` exits 1 where that would differ. A component is a value of its name, its patches are in
force under that condition, and a default is what the manifest says.
Does not cover: how templates are written (``template``), which values there are (``values``), the
files that are written by hand beside those.
"""

from __future__ import annotations

import argparse
import itertools
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

import koordlet
from tools.deploy import template, values

DEPLOY = Path(__file__).parents[2] / "deploy"
CHART = DEPLOY / "chart"
_HEAD = "# Made by python -m tools.deploy.chart, the reasons are in {}\n"
#: What is another one in each installation: also inside of a longer text, or by itself alone.
_NAMES = {
    "koordlet-system": "$.Release.Namespace",
    r"(?<![\w/.-])koordlet-scheduler-tls(?![\w/.-])": "$.Values.tls.schedulerSecret",
    r"(?<![\w/.-])koordlet-agent-tls(?![\w/.-])": "$.Values.tls.agentSecret",
    r"(?<![\w/.-])koordlet-webhook-tls(?![\w/.-])": "$.Values.tls.webhookSecret",
    # Where a node has it: the path in the container stays.
    r'(?<=\bpath: ")/var/lib/kubelet(?=["/])': "$.Values.agent.kubeletDirectory",
}
#: Where a pool has an object of its own: its name, its nodes.
_POOLS = """\
{{- range $pool, $overlay := merge (dict "" dict) $.Values.pools.configs }}
{{- $name := ternary "koordlet" (printf "koordlet-%s" $pool) (eq $pool "") }}
{{- $selector := deepCopy $.Values.agent.nodeSelector }}
{{- if $pool }}{{ $_ := set $selector $.Values.pools.label $pool }}{{ end }}
"""
#: Of a role's rules, those that a value takes away, by a resource of theirs.
_RIGHTS = {"pods/eviction": "evict", "devices": "devices"}
Documents = list[dict[str, Any]]


class Source:
    """Manifests of one file and what is patched into them; each with its condition."""

    def __init__(self, condition: str, path: str) -> None:
        self.condition = condition
        self.path = f"deploy/{path}"
        self.documents = [(document, "") for document in _documents(path)]

    def add(self, below: str, condition: str) -> None:
        """What a kustomization adds, under a condition."""
        body = yaml.safe_load((DEPLOY / below / "kustomization.yaml").read_text())
        self.path += f"\n# and deploy/{below}"
        for patch in body.get("patches", ()):
            name = (patch["target"]["kind"], patch["target"]["name"])
            [document] = (d for d, _ in self.documents if _name(d) == name)
            template.patch(document, yaml.safe_load(patch["patch"]), condition)
        # Also the monitor of pods, which no kustomization names: a reader may take it instead.
        for path in sorted((DEPLOY / below).glob("*.yaml")):
            if path.name != "kustomization.yaml":
                every = _documents(str(path.relative_to(DEPLOY)))
                self.documents += [(d, _monitored(path.stem, condition)) for d in every]

    def text(self) -> str:
        """The template."""
        lines = [f"{{{{- if {self.condition} }}}}"]
        pooled = [d for d, _ in self.documents if _name(d) in _POOLED]
        for document, condition in self.documents:
            if document not in pooled:
                lines += _conditional(document, condition)
        if pooled:
            lines += _POOLS.splitlines()
            for document in pooled:
                lines += _conditional(_of_pool(document), "")
            lines.append("{{- end }}")
        body = "\n".join(template.joined([*lines, "{{- end }}"])) + "\n"
        for name, expression in _NAMES.items():
            body = re.sub(name, f"{{{{ {expression} }}}}", body)
        return _HEAD.format(self.path) + body


_POOLED = (("ConfigMap", "koordlet"), ("DaemonSet", "koordlet"))


def files() -> dict[str, str]:
    """Path below the chart to text, of everything that is generated."""
    sources = _sources()
    every = [document for source in sources.values() for document, _ in source.documents]
    defaults = values.defaults(every, components())
    for document in every:
        _share(document)
    return {
        "Chart.yaml": _chart(),
        "values.yaml": values.text(defaults, components()),
        "values.schema.json": values.schema_text(defaults),
        **{f"templates/{name}.yaml": source.text() for name, source in sources.items()},
    }


def _sources() -> dict[str, Source]:
    agent = Source("$.Values.agent.enabled", "agent/daemonset.yaml")
    for name in components():
        agent.add(f"components/{folder(name)}", f"$.Values.components.{name}")
    reporting = "$.Values.components.reporting"
    scheduler = Source("$.Values.scheduler.enabled", "scheduler/scheduler.yaml")
    scheduler.add("overlays/reporting/scheduler", reporting)
    webhook = Source("$.Values.webhook.enabled", "webhook/webhook.yaml")
    webhook.add("overlays/webhook-scraped", "$.Values.components.scraped")
    return {
        "agent": agent,
        "admission": Source(
            "and $.Values.agent.enabled $.Values.agent.admission", "agent/admission.yaml"
        ),
        "scheduler": scheduler,
        "certificates": Source(
            f"and {reporting} $.Values.tls.certManager",
            "overlays/reporting/certificates/certificates.yaml",
        ),
        "descheduler": Source("$.Values.descheduler.enabled", "descheduler/descheduler.yaml"),
        "webhook": webhook,
        "webhook-certificates": Source(
            "and $.Values.webhook.enabled $.Values.tls.certManager",
            "overlays/webhook-certificates/certificates.yaml",
        ),
    }


def components() -> dict[str, str]:
    """Key of each component to what its file says first."""
    sentences = {}
    for path in sorted((DEPLOY / "components").iterdir()):
        lines = (path / "kustomization.yaml").read_text().splitlines()
        comment = itertools.takewhile(lambda line: line.startswith("#"), lines)
        words = " ".join(comment).replace("#", "").split()
        first = " ".join(words).partition(". ")[0].rstrip(".:")
        head, *rest = path.name.split("-")
        sentences[head + "".join(word.title() for word in rest)] = f"{first}."
    return sentences


def folder(component: str) -> str:
    """Where a component's kustomization is, below ``deploy/components``."""
    return re.sub(r"[A-Z]", lambda letter: f"-{letter[0].lower()}", component)


def _documents(path: str) -> Documents:
    every = yaml.safe_load_all((DEPLOY / path).read_text())
    return [document for document in every if document and document["kind"] != "Namespace"]


def _name(document: dict[str, Any]) -> tuple[str, str]:
    return (document["kind"], document["metadata"]["name"])


def _monitored(file: str, condition: str) -> str:
    """Monitors are one of two kinds, and a scheduler's is of those who scrape."""
    if file not in {"pod-monitor", "service-monitor"}:
        return condition
    of_pods = "$.Values.monitoring.podMonitor"
    conditions = " ".join(dict.fromkeys((condition, "$.Values.components.scraped")))
    return f"and {conditions} {of_pods if file == 'pod-monitor' else f'(not {of_pods})'}"


def _conditional(document: dict[str, Any], condition: str) -> Iterator[str]:
    if condition:
        yield f"{{{{- if {condition} }}}}"
    yield "---"
    yield from template.lines(document)
    if condition:
        yield "{{- end }}"


def _of_pool(document: dict[str, Any]) -> dict[str, Any]:
    """The object of each pool in place of the one."""
    name = template.Text("$name")
    document["metadata"]["name"] = name
    if document["kind"] == "DaemonSet":
        spec, pool = document["spec"], template.Text('$pool | default "rest" | quote')
        pod = spec["template"]["spec"]
        spec["selector"]["matchLabels"]["koordlet.io/pool"] = pool
        spec["template"]["metadata"]["labels"]["koordlet.io/pool"] = pool
        [config] = (v for v in pod["volumes"] if isinstance(v, dict) and "configMap" in v)
        config["configMap"]["name"] = name
        others = {
            "key": template.Text("$.Values.pools.label"),
            "operator": "NotIn",
            "values": template.Text("keys $.Values.pools.configs | sortAlpha | toJson"),
        }
        terms = {"nodeSelectorTerms": [{"matchExpressions": [others]}]}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
        pod["affinity"] = template.If(
            "and $.Values.pools.configs (not $pool)", {"nodeAffinity": required}
        )
    return document


def _share(document: dict[str, Any]) -> None:
    """What all programs have in common, and the rights that a value takes away."""
    if document["kind"] in ("DaemonSet", "Deployment"):
        pod = document["spec"]["template"]["spec"]
        pod["imagePullSecrets"] = template.Block("$.Values.imagePullSecrets", optional=True)
        first = pod.get("initContainers", template.If("", ()))
        for box in (*pod["containers"], *first.value):
            box["image"] = template.Text('include "koordlet.image" $')
            box["imagePullPolicy"] = template.Text("$.Values.image.pullPolicy")
    if _name(document) == ("ClusterRole", "koordlet"):
        document["rules"] = list(_rules(document["rules"]))


def _rules(rules: Iterable[Any]) -> Iterator[Any]:
    for rule in rules:
        resources = {} if isinstance(rule, template.If) else rule["resources"]
        right = next((_RIGHTS[resource] for resource in resources if resource in _RIGHTS), "")
        yield template.If(f"$.Values.rbac.{right}", rule) if right else rule


def _chart() -> str:
    body = {
        "apiVersion": "v2",
        "name": "koordlet",
        "description": "QoS-aware node agent, with its scheduler and descheduler",
        "type": "application",
        "version": koordlet.__version__,
        "appVersion": koordlet.__version__,
        "kubeVersion": ">=1.30.0-0",
    }
    return _HEAD.format("the version of koordlet") + yaml.safe_dump(body, sort_keys=False)


def main(words: list[str]) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description="Write the Helm chart from the manifests.")
    parser.add_argument("--check", action="store_true", help="exit 1 where it would differ")
    check = parser.parse_args(words).check
    different = [
        name
        for name, text in files().items()
        if not (CHART / name).exists() or (CHART / name).read_text() != text
    ]
    if check and different:
        sys.stderr.write(f"deploy/chart is old: {', '.join(different)}\nfix: make chart\n")
        return 1
    for name, text in files().items():
        (CHART / name).parent.mkdir(parents=True, exist_ok=True)
        (CHART / name).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
