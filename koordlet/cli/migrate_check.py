"""``koordlet migrate-check``: what changes where koordlet takes the place of Koordinator's agent.

Covers: its DaemonSet's gates, flags and port; ``slo-controller-config`` and NodeSLOs as each node
would have them; keys of pods and nodes; of a cluster, or of what kubectl printed.
Does not cover: what koordlet would write on a node now, which takes that node's files: run it there
with ``mode: observe`` and ask ``koordlet plan``.

It reads and changes nothing. Each finding names its subject and what to do:
  differs  works, and not as before
  absent   koordlet has nothing in its place
  broken   cannot be read; Koordinator's agent had ignored it, too, or failed
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from koordlet.cli import cluster_store, koordinator_features, options, output
from koordlet.kubeapi import kinds, manifests, objects, refusals
from koordlet.model import errors, nodeslo
from koordlet.report import strategies_json

EXAMPLES = """\
kubectl get nodes,pods,nodeslos,configmaps,daemonsets -A -o json > all.json
koordlet migrate-check all.json         what those objects tell, without asking anybody
koordlet migrate-check --kubeconfig admin.conf
koordlet migrate-check all.json -o json
"""

_KUBECONFIG = {
    "--kubeconfig FILE": "ask that cluster's API server in place of a file",
    "--context NAME": "a context of the kubeconfig",
}
_DAEMON_SETS = kinds.Kind("apps", "v1", "daemonsets", "DaemonSet")
_KINDS = (kinds.NODES, kinds.PODS, kinds.NODE_SLOS, kinds.CONFIG_MAPS, _DAEMON_SETS)
_SPACE, _AGENT, _CONFIG_MAP = "koordinator-system", "koordlet", "slo-controller-config"
_MARK = "koordinator.sh/"
_CLASS = "koordinator.sh/qosClass"
_PORT = "9316"
#: Names of subjects that are listed; the rest is counted.
_SHOWN = 3

Body = Mapping[str, Any]


class Difference(NamedTuple):
    """Something that will not be as it was."""

    state: str
    subject: str
    message: str
    fix: str = ""


class NodeView(NamedTuple):
    """What koordlet would have on one node."""

    name: str
    #: Class to how many pods say it; "none" for those that say nothing.
    pods: Mapping[str, int]
    #: Keys of strategies that differ from the defaults, with their values.
    strategies: Mapping[str, object]
    source: str


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("file", nargs="*", metavar="FILE", help="objects as kubectl prints them")
    options.declare(parser, _KUBECONFIG, context={"default": ""})
    options.output(parser, ("table", "json"))


def run(args: argparse.Namespace) -> int:
    """Read, judge, print."""
    if bool(args.file) == bool(args.kubeconfig):
        raise errors.UsageError(
            "nothing to look at, or two clusters",
            culprit="migrate-check",
            fix="name files that kubectl printed, or one --kubeconfig",
        )
    if args.kubeconfig:
        bodies = asyncio.run(_asked(args.kubeconfig, args.context))
    else:
        left_out: list[str] = []
        bodies = [body for path in args.file for body in manifests.load(path, left_out)]
        output.warn(left_out)
    nodes, findings = judge(bodies)
    if not nodes and not findings:
        raise errors.ConfigError(
            "has no Node, and nothing of Koordinator's agent",
            culprit=" ".join(args.file) or args.kubeconfig,
            fix="kubectl get nodes,pods,nodeslos,configmaps,daemonsets -A -o json",
        )
    document = {
        "nodes": [node._asdict() for node in nodes],
        "findings": [finding._asdict() for finding in findings],
    }
    return output.show(args.output, document, _lines(nodes, findings))


async def _asked(kubeconfig: str, context: str) -> list[Body]:
    """Every object that matters; a kind that the cluster does not have has none."""
    bodies: list[Body] = []
    async with cluster_store.opened(kubeconfig, context) as store:
        for kind in _KINDS:
            with contextlib.suppress(refusals.NotFound):
                async for page in store.list(kind):
                    bodies += [{**body, "kind": kind.name} for body in page.items]
    return bodies


def judge(bodies: Sequence[Body]) -> tuple[list[NodeView], list[Difference]]:
    """All nodes, and all findings: those of the cluster first. Pure."""
    by_kind: dict[str, list[Body]] = collections.defaultdict(list)
    for body in bodies:
        by_kind[str(body.get("kind"))].append(body)
    findings = [*_agents(by_kind["DaemonSet"])]
    maps = [m for m in by_kind["ConfigMap"] if objects.key(m) == (_SPACE, _CONFIG_MAP)]
    config = maps[0].get("data") if maps else None
    findings += _config_keys(config)
    nodes: list[NodeView] = []
    problems: dict[str, list[str]] = collections.defaultdict(list)
    pods: dict[str, list[Body]] = collections.defaultdict(list)
    for pod in by_kind["Pod"]:
        pods[str(objects.part(pod, "spec").get("nodeName"))].append(pod)
    slos = {objects.text(slo, "name"): slo for slo in by_kind["NodeSLO"]}
    for node in sorted(by_kind["Node"], key=lambda body: objects.text(body, "name")):
        name = objects.text(node, "name")
        slo = _strategies(slos.get(name), config, _labels(node))
        for problem in slo.problems:
            problems[problem].append(f"node {name}")
        for subject, problem in _unreadable(node, pods[name]):
            problems[problem].append(subject)
        rows = strategies_json.rows(slo)
        configured = {key: value for key, value, origin in rows if origin != "default"}
        nodes.append(NodeView(name, _classes(pods[name]), configured, slo.source))
    findings += [Difference("broken", _names(who), what) for what, who in problems.items()]
    findings += _keys("pod key", by_kind["Pod"])
    findings += _keys("node key", by_kind["Node"])
    return nodes, findings


def _strategies(slo: Body | None, config: Any, labels: Mapping[str, str]) -> nodeslo.NodeSlo:
    """As the agent of the node would read them: the node's own object, else the map."""
    from koordlet.workloads import nodeslo as decoded  # noqa: PLC0415 -- of this command alone
    from koordlet.workloads import sloconfig  # noqa: PLC0415 -- as above

    if slo is not None:
        return decoded.decode(slo)
    return sloconfig.decode(config, labels)


def _unreadable(node: Body, pods: Iterable[Body]) -> Iterator[tuple[str, str]]:
    """Subjects of a node with what the agent could not read of them."""
    from koordlet.workloads import nodes, poddecode  # noqa: PLC0415 -- of this command alone

    subject = f"node {objects.text(node, 'name')}"
    yield from ((subject, problem) for problem in nodes.decode(node).problems)
    for pod in pods:
        subject = f"pod {'/'.join(objects.key(pod))}"
        try:
            problems = poddecode.from_object(pod, "", subject).problems
        except ValueError as error:
            problems = (str(error),)
        yield from ((subject, problem) for problem in problems)


def _classes(pods: Iterable[Body]) -> dict[str, int]:
    classes = collections.Counter(str(_labels(pod).get(_CLASS) or "none") for pod in pods)
    return dict(sorted(classes.items()))


# Koordinator's agent ------------------------------------------------------------------------------


def _agents(sets: Iterable[Body]) -> Iterator[Difference]:
    for body in sets:
        if objects.key(body) != (_SPACE, _AGENT):
            continue
        words = _words(body)
        subject = f"daemonset {_SPACE}/{_AGENT}"
        port = words.get("addr", f":{_PORT}").rpartition(":")[2]
        if port == _PORT:
            yield Difference(
                "differs",
                subject,
                f"it listens on port {port} of each node, as koordlet does by default",
                "components/side-by-side, where both run for a while",
            )
        for gate, on in _gates(words.pop("feature-gates", "")):
            if on:
                yield from _answer("gate", gate, f"{subject}: gate {gate}")
        for flag in sorted(words):
            yield from _answer("flag", flag, f"{subject}: flag {flag}")


def _words(body: Body) -> dict[str, str]:
    """Flags that its containers are given."""
    pod = objects.part(objects.part(objects.part(body, "spec"), "template"), "spec")
    flags: dict[str, str] = {}
    for box in objects.parts(pod, "containers"):
        for word in (*objects.listed(box, "command"), *objects.listed(box, "args")):
            if str(word).startswith("-"):
                flag, _, value = str(word).lstrip("-").partition("=")
                flags[flag] = value
    return flags


def _gates(text: str) -> Iterator[tuple[str, bool]]:
    for word in filter(None, text.replace(" ", "").split(",")):
        gate, _, value = word.partition("=")
        yield gate, value.lower() == "true"


def _config_keys(data: Any) -> Iterator[Difference]:
    for key in sorted(data) if isinstance(data, Mapping) else ():
        yield from _answer("ConfigMap key", str(key), f"configmap {_CONFIG_MAP}: {key}")


def _answer(sort: str, name: str, subject: str) -> Iterator[Difference]:
    """What differs, with where it is here; nothing for what stays.

    A flag or key that is not in the table is of a library, or of another program of theirs.
    """
    feature = koordinator_features.find(sort, name)
    if feature is None and sort in ("gate", "ConfigMap key"):
        yield Difference("absent", subject, "koordlet does not know it: it has no effect")
    if feature is not None and feature.state != "same":
        message = feature.note or "is set elsewhere"
        yield Difference(feature.state, subject, message, feature.ours)


# Keys ---------------------------------------------------------------------------------------------


def _keys(sort: str, bodies: Iterable[Body]) -> Iterator[Difference]:
    """Keys of Koordinator that do not mean here what they mean there, each once."""
    users: dict[str, list[str]] = collections.defaultdict(list)
    for body in bodies:
        for key in sorted({*_labels(body), *objects.part(objects.metadata(body), "annotations")}):
            if _MARK in key:
                users[key].append("/".join(filter(None, objects.key(body))))
    for key, who in users.items():
        yield from _answer(sort, key, f"{sort} {key}: {_names(who)}")


def _labels(body: Body) -> Mapping[str, Any]:
    return objects.part(objects.metadata(body), "labels")


def _names(who: Sequence[str]) -> str:
    more = f" and {len(who) - _SHOWN} more" if len(who) > _SHOWN else ""
    return ", ".join(who[:_SHOWN]) + more


def _lines(nodes: Sequence[NodeView], findings: Sequence[Difference]) -> Iterator[str]:
    rows = [
        (
            node.name,
            " ".join(f"{name}={count}" for name, count in node.pods.items()) or "none",
            f"{len(node.strategies)} of {node.source}" if node.strategies else "defaults",
        )
        for node in nodes
    ]
    yield from output.table(rows, head=("NODE", "PODS", "STRATEGIES"))
    yield ""
    users: dict[tuple[str, str], list[str]] = collections.defaultdict(list)
    for node in nodes:
        for key, value in node.strategies.items():
            users[key, json.dumps(value)].append(node.name)
    if users:
        applied = [(key, value, _names(who)) for (key, value), who in users.items()]
        yield from output.table(applied, head=("STRATEGY", "VALUE", "NODES"))
        yield ""
    if not findings:
        yield "nothing differs: every gate, key and flag in use works under its name"
        return
    shown = [(f.state, f.subject, f.message, f.fix) for f in findings]
    yield from output.table(shown, head=("WHAT", "WHERE", "HOW", "HERE"))
