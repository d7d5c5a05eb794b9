"""``koordlet explain pod NS/NAME``: its class, its CPUs, its files, and what is wrong with it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from koordlet.cli import explain_source, output

HELP = "why a pod runs where it runs, and what is wrong with it"


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("pod", metavar="NAMESPACE/NAME", help="the workload, or its UID")
    explain_source.add(parser)


def run(args: argparse.Namespace) -> int:
    """Print it."""
    found = explain_source.pod(args, args.pod)
    if args.output == "json":
        output.print_json(found)
    else:
        print("\n".join(output.visible(line) for line in lines(found)))
    return 0


def lines(one: explain_source.Document) -> Iterator[str]:
    """Format the document for people."""
    yield f"{one.get('namespace')}/{one.get('name')}: {one.get('qos')} ({one.get('qosFrom')})"
    stale = ", which has not answered lately" if one.get("stale") else ""
    yield f"  known from {one.get('source')}{stale}; UID {one.get('uid')}"
    held = explain_source.part(one, "holds")
    if held:
        yield f"  holds      CPUs {held.get('cpus')} alone: {held.get('reason')}"
    yield f"  cgroup     {_group(explain_source.part(one, 'cgroup')) or one.get('match')}"
    for box in explain_source.rows(one, "containers"):
        where = _group(explain_source.part(box, "cgroup")) or "not running"
        yield f"  container  {box.get('name')} ({box.get('kind')}): {where}"
    for stem, said in explain_source.part(one, "policies").items():
        yield f"  {stem}: {said}"
    for step in explain_source.rows(one, "actions"):
        mode = "" if step.get("mode") == "enforce" else f" [{step.get('mode')}]"
        yield (
            f"  to do      {step.get('target')}: {step.get('was') or 'unset'} → {step.get('value')}"
            f" ({step.get('policy')}){mode}"
        )
    for wrong in explain_source.rows(one, "conditions"):
        yield f"  ! {wrong.get('type')}: {wrong.get('message')}"
    if not explain_source.rows(one, "conditions"):
        yield "  nothing is wrong with it"


def _group(found: explain_source.Document) -> str:
    if not found:
        return ""
    if not found.get("exists"):
        return f"{found.get('path')}, which is not there"
    cpus = found.get("effective") or found.get("cpus")
    return f"{found.get('path')}, on CPUs {cpus}" if cpus else str(found.get("path"))
