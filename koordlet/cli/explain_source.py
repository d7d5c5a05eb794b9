"""Gets the documents to explain: from the running agent, else from one pass of this program.

Covers: the options, choosing. Does not cover: the words (``explain_cpu``, ``explain_pod``).

The agent knows since when a CPU is held and what it decided; a look of our own starts with an empty
memory, as ``koordlet plan`` does, and decides what an agent that starts now would decide.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from urllib.parse import quote

from koordlet.agent import bootstrap, sources
from koordlet.cli import options, output, top_source
from koordlet.model import errors
from koordlet.report import cpus_json, plan_json, pod_json, view

Document = dict[str, object]


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options that all subjects share."""
    options.root(parser)
    options.output(parser, ("table", "json"))
    add_source(parser)


def add_source(parser: argparse.ArgumentParser) -> None:
    """Declare where explanations come from."""
    options.config(parser)
    parser.add_argument(
        "--address",
        metavar="HOST:PORT",
        help="HTTP address of the running agent (default: the configured one, if it answers)",
    )
    parser.add_argument(
        "--pods",
        metavar="FILE",
        help="Pods as kubectl prints them, as for koordlet plan; the running agent is not asked",
    )
    options.cgroup_root(parser)


def cpus(args: argparse.Namespace) -> Document:
    """The owner map."""
    return _ask(args, "/api/v1/cpus", cpus_json.document)


def plan(args: argparse.Namespace, changed: Mapping[str, object] | None = None) -> Document:
    """The plan, as ``koordlet plan -o json`` prints it; ``changed``: with other values."""

    def made(now: view.ReportView) -> Document:
        return plan_json.render(now.plan)

    return _ask(args, "/api/v1/plan", made, changed, thorough=True)


def pod(args: argparse.Namespace, key: str) -> Document:
    """Get the document of one workload; ``UsageError`` for an unknown name."""

    def made(now: view.ReportView) -> Document:
        document = pod_json.document(now, key)
        if document is None:
            known = ", ".join(sorted(pod_json.names(now))[:5])
            raise errors.UsageError(
                "no workload here has this name",
                culprit=key,
                fix=f"one of: {known}" if known else "nothing is declared on this machine",
            )
        return document

    return _ask(args, f"/api/v1/pod?name={quote(key)}", made)


def _ask(
    args: argparse.Namespace,
    path: str,
    make: Callable[[view.ReportView], Document],
    changed: Mapping[str, object] | None = None,
    *,
    thorough: bool = False,
) -> Document:
    config = bootstrap.effective(args, changed or {})
    if args.pods is None:
        source = top_source.choose(args, changed)
        if isinstance(source, top_source.Agent):
            return source.ask(path)
        told = sources.once(config.config, bootstrap.host(args))
        output.warn(sources.unheard(told))
        source.tell(told)
        return make(source.look(thorough=thorough))
    from koordlet.workloads import manifests  # noqa: PLC0415 -- only who gives a file pays

    found = manifests.load(args.pods)
    output.warn(found.warnings)
    alone = top_source.Self(args, config)
    alone.tell(found.observed())
    return make(alone.look(thorough=thorough))


# Reading documents --------------------------------------------------------------------------------


def part(body: object, name: str) -> Document:
    """An object within a document; empty where it is none."""
    found = body.get(name) if isinstance(body, dict) else None
    return found if isinstance(found, dict) else {}


def rows(body: object, name: str) -> list[Document]:
    """A list of objects within a document."""
    found = body.get(name) if isinstance(body, dict) else None
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
