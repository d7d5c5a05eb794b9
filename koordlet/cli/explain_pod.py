"""``koordlet explain pod NS/NAME``: its class, its CPUs, its files, and what is wrong with it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from koordlet.cli import node_source, output
from koordlet.report import documents

#: What the state of a resize in place means.
_RESIZES = {
    "Deferred": ": the kubelet tries again as pods leave; what is larger, old or new, counts",
    "Infeasible": ": the node can never hold it, nobody tries again; the old amounts count",
    "InProgress": ": what is larger, old or new, counts until it is done",
}

HELP = "why a pod runs where it runs, and what is wrong with it"


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("pod", metavar="NAMESPACE/NAME", help="the workload, or its UID")
    node_source.add(parser)


def run(args: argparse.Namespace) -> int:
    """Print it."""
    pod = node_source.pod(args, args.pod)
    return output.show(args.output, pod, lines(pod))


def lines(document: documents.Document) -> Iterator[str]:
    """Format the document for people."""
    name = f"{document.get('namespace')}/{document.get('name')}"
    yield f"{name}: {document.get('qos')} ({document.get('qosFrom')})"
    stale = ", but no source has listed it lately" if document.get("stale") else ""
    yield f"  known from {document.get('source')}{stale}; UID {document.get('uid')}"
    if resize := document.get("resize"):
        yield f"  resize     {resize}{_RESIZES.get(str(resize), '')}"
    held = documents.part(document, "holds")
    if held:
        yield f"  holds      CPUs {held.get('cpus')} alone: {held.get('reason')}"
    for claim in documents.rows(document, "claims"):
        shares = ", ".join(map(_share, documents.rows(claim, "devices")))
        cpus = f"CPUs {claim.get('cpus')} alone: " if claim.get("cpus") else ""
        yield f"  claim      {claim.get('name')}: {cpus}{shares}"
    yield f"  cgroup     {_group(documents.part(document, 'cgroup')) or document.get('match')}"
    for box in documents.rows(document, "containers"):
        where = _group(documents.part(box, "cgroup")) or "not running"
        yield f"  container  {box.get('name')} ({box.get('kind')}): {where}"
    for stem, explanation in documents.part(document, "policies").items():
        yield f"  {stem}: {explanation}"
    for step in documents.rows(document, "actions"):
        mode = "" if step.get("mode") == "enforce" else f" [{step.get('mode')}]"
        yield (
            f"  to do      {step.get('target')}: {step.get('was') or 'unset'} → {step.get('value')}"
            f" ({step.get('policy')}){mode}"
        )
    for wrong in documents.rows(document, "conditions"):
        yield f"  ! {wrong.get('type')}: {wrong.get('message')}"
    if not documents.rows(document, "conditions"):
        yield "  nothing is wrong with it"


def _share(share: documents.Document) -> str:
    """What a claim has of one device."""
    amounts = (("cpus", "CPUs"), ("ways", "ways alone"), ("mbaPercent", "% of bandwidth at most"))
    known = ", ".join(f"{share[key]} {words}" for key, words in amounts if share.get(key))
    return f"{known or 'a group of its own'} of {share.get('device')}"


def _group(document: documents.Document) -> str:
    if not document:
        return ""
    if not document.get("exists"):
        return f"{document.get('path')}, which is not there"
    cpus = document.get("effective") or document.get("cpus")
    return f"{document.get('path')}, on CPUs {cpus}" if cpus else str(document.get("path"))
