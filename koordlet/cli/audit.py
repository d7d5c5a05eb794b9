"""``koordlet audit``: what was done here, when, to which pod, and why."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from pathlib import Path

from koordlet.agent import bootstrap
from koordlet.cli import options, output
from koordlet.model import errors
from koordlet.policy.framework import registry
from koordlet.report import audit_json

EXAMPLES = """\
koordlet audit --since 10m                      the last ten minutes, newest first
koordlet audit --pod default/web --limit 20     what happened to one pod
koordlet audit --policy shared_pools -o json    of one policy, for programs
"""
#: Both files of the log, whole: a person waits for it, no loop does.
_SCAN = 1 << 26
_OPTIONS = {
    "--since TIME": "10m, 2h, 3d ago, Unix seconds, or 2026-01-31T12:00:00Z"
    " (default: all that is kept)",
    "--pod NS/NAME": "of this workload only",
    "--policy STEM": "of this policy only",
    "--limit N": f"at most this many, the newest (default: {audit_json.DEFAULT_LINES})",
    "--state-dir DIR": "the DIR that the agent was started with",
}


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    options.config(parser)
    options.output(parser, ("table", "json"))
    options.declare(parser, _OPTIONS, limit={"type": int, "default": audit_json.DEFAULT_LINES})


def run(args: argparse.Namespace) -> int:
    """Read the log directly, so that it answers for an agent that has ended as well."""
    where = bootstrap.state_paths(args, bootstrap.effective(args, {})).audit
    if args.limit < 1:
        why = f"{args.limit} is no number of lines"
        raise errors.ConfigError(why, culprit="--limit", fix="give 1 or more")
    question = audit_json.AuditQuery(
        limit=args.limit, since=_since(args.since), pod=args.pod, policy=args.policy
    )
    try:
        document = audit_json.document(where, question, most=_SCAN)
    except OSError as error:
        raise bootstrap.unreadable(where, error) from error
    nothing = [] if document["records"] else _why_nothing(where, args.policy)
    return output.show(args.output, document, [*lines(document, str(where)), *nothing])


def _why_nothing(where: Path, stem: str | None) -> list[str]:
    """Suggest another log or policy; old logs may have stems that no longer exist."""
    if not where.exists():
        return ["there is no such file: no agent has acted here, or its --state-dir is another"]
    known = {row.stem for row in registry.POLICIES}
    if stem is None or stem in known:
        return []
    near = errors.nearest(stem, known)
    return [f'no policy has the name {stem}: did you mean "{near}"?'] if near else []


def _since(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        return audit_json.moment(text, time.time())
    except (ValueError, OverflowError) as error:
        raise errors.ConfigError(
            f"{text[:40]!r} is no time",
            culprit="--since",
            fix="give 10m, Unix seconds, or 2026-01-31T12:00:00Z",
        ) from error


def lines(document: Mapping[str, object], where: str) -> list[str]:
    """The table, and what is not in it."""
    records = document["records"]
    if not isinstance(records, list) or not records:
        return [f"nothing that fits in {where}"]
    head = ("WHEN", "VERDICT", "POLICY", "POD", "FILE", "WAS", "VALUE", "WHY")
    shown = output.table([_row(record) for record in records], head=head)
    if document["damaged"]:
        shown.append(f"{document['damaged']} damaged lines are left out")
    if document["truncated"]:
        shown.append("older lines were not looked at")
    return shown


def _row(record: Mapping[str, object]) -> list[str]:
    why = str(record.get("reason") or "")
    detail = record.get("detail")
    cells = [record.get(key) for key in ("verdict", "policy", "pod", "target", "was", "value")]
    return [
        output.moment(record.get("at")).removesuffix(" UTC").removeprefix("?"),
        *("" if cell is None else str(cell).strip() for cell in cells),
        f"{why}: {detail}" if detail else why,
    ]
