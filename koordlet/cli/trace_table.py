"""The table of ``koordlet trace``: the stations of one pass, as a person reads them.

Covers: the document of ``report.trace_json`` as lines. Does not cover: making it (``cli.trace``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from koordlet.apply import trace
from koordlet.cli import output
from koordlet.model import plan
from koordlet.report import documents

Document = documents.Document

#: Why an action is no step, in the words of a table.
_FATES: Mapping[object, str] = {
    trace.Fate.DUE.value: "due",
    trace.Fate.SHADOW.value: "only shown",
    trace.Fate.ALREADY_SO.value: "so already",
    trace.Fate.OVERRULED.value: "overruled",
    trace.Fate.MERGED.value: "merged",
    trace.Fate.UNANSWERED.value: "no answer",
}
#: Those that the order tells, or that are no news; a choice of a policy or group shows them too.
_PLAIN = frozenset({trace.Fate.DUE.value, trace.Fate.SHADOW.value, trace.Fate.ALREADY_SO.value})


#: Whether a threshold is met.
_MET: Mapping[object, str] = {True: "met", False: "not met"}


def lines(document: Document, *, detailed: bool = False) -> Iterator[str]:
    """The stations in order; ``detailed``: each action, and what each policy saw."""
    where = "this machine" if document["live"] else "a recorded machine"
    yield f"One pass of {where} at {output.moment(document['at'])}"
    yield from ("", "Read")
    yield from _read(documents.part(document, "read"))
    yield from ("", "Decided, each policy with the claims of those above it")
    policies = documents.rows(document, "policies")
    head = ("POLICY", "MODE", "WANTS", "OF THESE", "WHY")
    yield from output.table([_policy(policy) for policy in policies], head=head, indent="  ")
    for policy in policies:
        yield from _details(policy, detailed=detailed)
    wishes = documents.rows(document, "wishes")
    yield from ("", "Compared with what is there")
    yield from _compared(wishes, detailed=detailed)
    yield from ("", "Ordered")
    steps = documents.rows(document, "order")
    yield from (line for step in steps for line in _step(step))
    if not steps:
        yield "  no step"
    for left in documents.rows(document, "left"):
        yield f"  left     {left['target']}: {left['why']}"
    yield from ("", "Written: nothing")
    yield from (f"  {why}" for why in _texts(documents.part(document, "written"), "why"))


def _texts(document: Document, name: str) -> list[str]:
    several = document[name]
    return [str(text) for text in several] if isinstance(several, list) else []


def _read(document: Document) -> Iterator[str]:
    """What was looked at, what was absent, what is stale."""
    about, files = documents.part(document, "machine"), documents.part(document, "files")
    sets = about["cpusetVersion"]
    cpusets = f"cpuset on {sets}" if sets else "no cpuset"
    node = f"{about['node']}: CPUs {about['cpus']}"
    yield f"  machine    {node}; cgroup {about['cgroups']}, {cpusets}"
    refused = Counter(str(row["errno"]) for row in documents.rows(files, "refused"))
    text = f"{files['read']} read, {len(_texts(files, 'absent'))} absent"
    yield "  files      " + ", ".join((text, *(f"{n} {name}" for name, n in refused.items())))
    yield from (f"  ! no answer: {path}" for path in _texts(files, "unanswered"))
    yield f"  groups     {len(_texts(document, 'groups'))}"
    pods = documents.rows(document, "workloads")
    classes = Counter(str(pod["qos"]) for pod in pods)
    of_them = f" ({', '.join(f'{n} {name}' for name, n in classes.items())})" if pods else ""
    yield f"  workloads  {len(pods)}{of_them}"
    for pod in pods:
        if pod["cgroup"] is None:
            yield f"  ! {pod['workload']} is not running: {pod['match'] or 'no cgroup is known'}"
        if pod["stale"]:
            yield f"  ! {pod['workload']} may be out of date: no source has listed it lately"
        yield from (f"  ! {pod['workload']}: {problem}" for problem in _texts(pod, "problems"))
    for source in documents.rows(document, "sources"):
        yield f"  source     {source['name']}: {_health(source)}"
    for rejected in documents.rows(document, "unread"):
        yield f"  ! {rejected['kind']} {rejected['name']} cannot be used: {rejected['why']}"
    yield from (f"  ! node: {problem}" for problem in _texts(document, "nodeProblems"))
    if document["journaled"] is not None:
        yield f"  journal    {document['journaled']} files hold a value of koordlet's"
    missing: dict[str, list[str]] = {}
    for gap in documents.rows(document, "unsupported"):
        missing.setdefault(str(gap["why"]), []).append(str(gap["feature"]))
    yield from (f"  missing    {', '.join(names)}: {why}" for why, names in missing.items())


def _health(source: Document) -> str:
    age, believed = source["ageSeconds"], source["believedSeconds"]
    last = f"last answer {age:.0f} s ago" if isinstance(age, int | float) else "no answer yet"
    problem = f": {source['problem']}" if source["problem"] else ""
    if source["stale"]:
        bound = f", believed for {believed:.0f} s" if isinstance(believed, int | float) else ""
        return f"STALE, {last}{bound}{problem}"
    return "ok" if source["ok"] else f"FAILED, {last}{problem}"


def _policy(document: Document) -> tuple[str, ...]:
    fates = documents.part(document, "fates")
    counts = {"action": sum(number for number in fates.values() if isinstance(number, int))}
    counts |= {n: len(documents.rows(document, f"{n}s")) for n in ("claim", "pool", "eviction")}
    wants = [f"{count} {noun}{'s' if count > 1 else ''}" for noun, count in counts.items() if count]
    facts = documents.part(document, "explanation").items()
    why = document["whyNothing"] or "; ".join(f"{name}: {fact}" for name, fact in facts if fact)
    became = ", ".join(f"{number} {_FATES[fate]}" for fate, number in fates.items())
    silent = "-" if document["mode"] == plan.Mode.OFF.value else "nothing"
    return (
        str(document["policy"]),
        str(document["mode"]),
        ", ".join(wants) or silent,
        became or "-",
        str(why) or "-",
    )


def _details(document: Document, *, detailed: bool) -> Iterator[str]:
    """What is wrong, and for a choice all that a policy saw and said."""
    name = document["policy"]
    for condition in documents.rows(document, "conditions"):
        if condition["status"] == "True":
            yield f"  ! {name}: {condition['type']} {condition['subject']}: {condition['message']}"
    for victim in documents.rows(document, "evictions"):
        held = f" (not done: {victim['held']})" if victim["held"] else ""
        yield f"  ! {name}: evict {victim['pod']} for {victim['signal']}{held}"
    saw = documents.part(document, "saw")
    if not detailed or not saw:
        return
    yield f"  {name}: {document['summary']}"
    yield f"    mode       {document['mode']} ({document['modeFrom']})"
    yield f"    settings   {saw['settings']}"
    yield f"    state      {saw['state']}"
    if saw["remembered"]:
        yield "    not called: nothing that it looks at has changed since the pass before"
    for claim in documents.rows(saw, "claims"):
        yield f"    claimed before it: {claim['cpus']} {claim['owner']} {claim['holder']}"
    for signal in documents.rows(document, "signals"):
        met = _MET.get(signal["met"], "unknown")
        yield (
            f"    signal     {signal['name']} {signal['observed'] or '?'}, threshold"
            f" {signal['threshold']}: {met}"
        )
    for claim in documents.rows(document, "claims"):
        whose = f"{claim['owner']} {claim['holder']}"
        yield f"    claims     {claim['cpus']} {whose}: {claim['reason']}"
    for pool in documents.rows(document, "pools"):
        yield f"    pool       {pool['kind']} {pool['cpus']}"


def _compared(wishes: list[Document], *, detailed: bool) -> Iterator[str]:
    fates = Counter(str(_FATES[wish["fate"]]) for wish in wishes)
    counted = ", ".join(f"{number} {fate}" for fate, number in fates.items())
    yield f"  {len(wishes)} actions wanted" + (f": {counted}" if counted else "")
    for wish in wishes:
        if not detailed and wish["fate"] in _PLAIN:
            continue
        value = wish["value"] if wish["value"] is not None else wish["kind"]
        detail = f": {wish['detail']}" if wish["detail"] else ""
        yield f"  {_FATES[wish['fate']]:<10} {wish['target']} {value} by {wish['policy']}{detail}"
        yield f"             {wish['reason']}"


def _step(step: Document) -> Iterator[str]:
    marks = [mark for mark in ("undo", "interim") if step[mark]]
    marks += ["shadow"] if step["mode"] == plan.Mode.SHADOW.value else []
    change = f"  {step['was'] or 'unset'} → {step['value']}" if step["value"] is not None else ""
    marked = f" [{', '.join(marks)}]" if marks else ""
    yield f"  {step['order']!s:>4} {step['kind']} {step['target']}{change}{marked}"
    yield f"       {step['policy']}: {step['reason']}"
    if step["failed"]:
        yield f"       ! tried last: {step['failed']}"
