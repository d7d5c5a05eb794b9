"""``koordlet explain write PATH``: who wants what in a file, what was there before, what was done.

Covers: one look of our own, the journal and the audit log, put together for one file.
Does not cover: deciding (``agent.tick``), the journal's and the log's formats (``state``).

What the policies want is what an agent that starts now would decide, as in ``koordlet plan``; the
journal and the log are those of the agent that ran here last. A recorded machine has neither.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from koordlet.agent import bootstrap, publisher, sources
from koordlet.cli import options, output
from koordlet.host import machine
from koordlet.host.fs import root
from koordlet.model import cgroup, errors, knob, plan, pod
from koordlet.report import audit_json, documents, plan_json
from koordlet.state import journal

HELP = "who wants what in a file, what was there before koordlet, what was done to it"

#: Records of the audit log that are shown, the newest.
_RECORDS = 5
#: Both files of the log, whole: a person waits for it, no loop does.
_SCAN = 1 << 26
_FILE = "name values=form unit leastCounts=least mayBlock=may_block answers"
_ENTRY = "original ours=values policy since=unix_time sure"


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("path", metavar="PATH", help="the file, as koordlet plan names it")
    options.root(parser)
    options.output(parser, ("table", "json"))
    options.config(parser)
    options.state(parser)


def run(args: argparse.Namespace) -> int:
    """Print it."""
    path = args.path.rstrip("/")
    if not path.startswith("/") or not cgroup.stays_below(path[1:]):
        raise errors.UsageError(
            "not a path from / without . and ..",
            culprit=output.visible(args.path),
            fix="name it as koordlet plan does: /sys/fs/cgroup/...",
        )
    config = bootstrap.effective(args, {})
    host = bootstrap.host(args)
    told = sources.once(config.config, host)
    tick = bootstrap.open_tick(args, host, config, take=lambda: told)
    output.warn(sources.unheard(told))
    entries, records = {}, []
    if host.live:
        where = bootstrap.state_paths(args, config)
        entries = remembered(where.journal, machine.identify(host))
        question = audit_json.AuditQuery(limit=_RECORDS, target=path)
        records = documents.rows(audit_json.document(where.audit, question, most=_SCAN), "records")
    explanation = document(path, host, tick.draft(entries), entries.get(path), records)
    return output.show(args.output, explanation, lines(explanation))


def remembered(path: Path, identity: machine.MachineIdentity) -> dict[str, journal.Entry]:
    """The journal of the agent that ran here last; reading repairs nothing."""
    try:
        return journal.peek(path, machine_id=identity.machine_id, boot_id=identity.boot_id)
    except OSError as error:
        raise bootstrap.unreadable(path, error) from error


def document(
    path: str,
    host: root.HostRoot,
    made: publisher.Pass,
    entry: journal.Entry | None,
    records: Sequence[documents.Document],
) -> documents.Document:
    """Collect everything known about one file."""
    seen = made.snapshot
    row, group = _row(seen.layout, path)
    wanted: list[documents.Document] = [
        {
            "policy": action.policy,
            "value": plan_json.value_of(action),
            "reason": action.reason,
            "mode": outcome.mode.value,
        }
        for outcome in made.round.outcomes
        if outcome.decision is not None
        for action in outcome.decision.actions
        if action.target == path
    ]
    steps = [step for step in made.draft.plan.steps if step.action.target == path]
    return {
        "path": path,
        "value": _text(host, path),
        "file": None if row is None else documents.fields(row, _FILE) | {"values": row.form.range},
        "group": group,
        "pod": _owner(seen.pods, group),
        "wanted": wanted,
        "actions": [plan_json.described(step) for step in steps],
        "left": [left.why for left in made.draft.left if left.target == path],
        "before": None if entry is None else documents.fields(entry, _ENTRY),
        "records": records,
        "verdict": _verdict(wanted, steps, entry, records),
    }


def _verdict(
    wanted: list[documents.Document],
    steps: list[plan.Step],
    entry: object,
    records: Sequence[documents.Document],
) -> str:
    """The answer in one sentence."""
    if any(step.undo for step in steps):
        return "ours, and no policy wants it any more: it is put back"
    if steps:
        shadow = all(step.mode is plan.Mode.SHADOW for step in steps)
        return "it would be written, in shadow" if shadow else "to be written"
    if wanted:
        return "as it is wanted"
    if entry is not None:
        return "ours, and left as it is"
    if records:
        return (
            "nobody's now: no policy wants anything there, and nothing of koordlet's is left in it"
        )
    return "nobody's: no policy wants anything there, and koordlet has not written it"


def _row(layout: cgroup.Layout, path: str) -> tuple[knob.Knob | None, str | None]:
    """The row of the table that a path is a file of, and its group."""
    directory, _, name = path.rpartition("/")
    for hierarchy in layout.hierarchies:
        top = hierarchy.directory("")
        if directory != top and not directory.startswith(f"{top}/"):
            continue
        group = directory[len(top) :].strip("/")
        for row in knob.TABLE.values():
            if (
                row.file(unified=hierarchy.unified) == name
                and layout.holder(row.controller) is hierarchy
            ):
                return row, group
        return None, group
    return None, None


def _owner(pods: tuple[pod.Pod, ...], group: str | None) -> str | None:
    """The workload that a group is of, or is in."""
    keys = {workload.group: workload.key for workload in pods if workload.group is not None}
    places = () if group is None else (group, *cgroup.ancestors(group))
    return next((keys[place] for place in places if place in keys), None)


def _text(host: root.HostRoot, path: str) -> str | None:
    try:
        return host.text(host.at(path)).rstrip("\n")
    except OSError:
        return None


# For people ---------------------------------------------------------------------------------------


def lines(explanation: documents.Document) -> Iterator[str]:
    """Format the document for people."""
    yield f"{explanation['path']}: {explanation['verdict']}"
    value = explanation["value"]
    yield f"  says     {'nothing: it cannot be read, or is not there' if value is None else value}"
    about = documents.part(explanation, "file")
    if about:
        yield f"  takes    {about['values']} {about['unit']}".rstrip()
        if about["answers"]:
            yield f"           {about['answers']}"
    if explanation["pod"]:
        yield f"  of       {explanation['pod']}"
    for wish in documents.rows(explanation, "wanted"):
        mode = "" if wish["mode"] == "enforce" else f" [{wish['mode']}]"
        yield f"  wanted   {wish['value']} by {wish['policy']}{mode}: {wish['reason']}"
    for step in documents.rows(explanation, "actions"):
        was = step.get("was") or "unset"
        yield f"  to do    step {step['order']}: {was} → {step['value']} ({step['reason']})"
    left = explanation["left"]
    for why in left if isinstance(left, list) else ():
        yield f"  left     {why}"
    before = documents.part(explanation, "before")
    if before:
        original = before["original"]
        was = "nothing" if original is None else repr(original)
        yield f"  before   {was}, until {output.moment(before['since'])}; ours: {before['ours']}"
    for record in documents.rows(explanation, "records"):
        yield f"  done     {output.moment(record.get('at'))} {_deed(record)}"


def _deed(record: Mapping[str, object]) -> str:
    change = f"{record.get('was') or 'unset'} → {record.get('value')}"
    why, policy = str(record.get("detail") or record.get("reason") or ""), record.get("policy")
    told = why if why.startswith(f"{policy}: ") else f"{policy}: {why}"
    return f"{record.get('verdict')}: {change} ({told})"
