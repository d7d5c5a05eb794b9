"""A round of the descheduler over a dump, as a person reads it.

Covers: reading the two files, the text, also that of a descheduler's last round. Does not cover:
the round (``scheduler.sim.descheduling``).
"""

from __future__ import annotations

import gc
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from koordlet.cli import output
from koordlet.model import errors

if TYPE_CHECKING:
    from koordlet.scheduler.descheduling import configuration


def read(path: str) -> configuration.DeschedulerSettings:
    """A configuration of either peer; ``ConfigError`` names file and field."""
    from koordlet.kubeapi import manifests  # noqa: PLC0415 -- YAML: 8 ms of a `--help`
    from koordlet.scheduler.descheduling import configuration  # noqa: PLC0415 -- numpy: 170 ms

    return configuration.read_all(manifests.load(path), path)


def show(
    form: str,
    bodies: Sequence[Mapping[str, Any]],
    settings: configuration.DeschedulerSettings,
    *,
    now: float | None,
    explain: str = "",
) -> int:
    """Print what one round would do, or every check of one pod."""
    from koordlet.kubeapi import manifests  # noqa: PLC0415 -- as above
    from koordlet.scheduler.sim import descheduling  # noqa: PLC0415 -- as above

    # What was read stays, and so does what is made of it: only newer objects are collected.
    gc.freeze()
    moment = now if now is not None else manifests.newest(bodies)
    simulation = descheduling.DeschedulingSimulation(
        bodies, settings, time.time() if moment is None else moment
    )
    gc.freeze()
    output.warn((*settings.warnings, *simulation.warnings))
    if not explain:
        document = simulation.run()
        return output.show(form, document, lines(document))
    key = explain if "/" in explain else f"default/{explain}"
    explanation = simulation.explain(key)
    if explanation is None:
        raise errors.ConfigError("no such pod has a node", culprit=key)
    return output.show(form, explanation, explained(explanation))


def lines(document: Mapping[str, Any]) -> list[str]:
    """The moves, what stops the rest, why strategies do nothing."""
    text: list[str] = []
    if document["moves"]:
        rows = [
            (
                *(move["pod"], move["node"], move["target"], move["strategy"]),
                move["reason"] + (" (only shown)" if move["shadow"] else ""),
            )
            for move in document["moves"]
        ]
        text += output.table(rows, head=("POD", "FROM", "TO", "STRATEGY", "REASON"))
    for rank in document["ranked"]:
        text.append(
            f"{rank['pod']} on {rank['node']} gets deletion cost {rank['deletionCost']}:"
            f" {rank['reason']}" + (" (only shown)" if rank["shadow"] else "")
        )
    for each in document.get("avoided", ()):  # older ones have no such list
        removed = ", ".join(each["removes"])
        text.append(
            f"the workload of {each['pod']} avoids {each['node']} for"
            f" {each['avoidSeconds'] / 60:.0f} minutes: {each['reason']}"
            + (f"; removed: {removed}" if removed else "")
            + (" (only shown)" if each["shadow"] else "")
        )
    for refusal in document["refused"]:
        text.append(f"{refusal['pod']} stays on {refusal['node']}: {refusal['why']}")
    for note in document["notes"]:
        who = "/".join(filter(None, (note["profile"], note["strategy"])))
        text.append(f"{who}: {note['message']}")
    for failure in document["failures"]:
        text.append(f"! {failure['profile']}/{failure['strategy']} failed: {failure['message']}")
    moves = document["moves"]
    if document.get("dryRun", True):
        text.append(f"{len(moves)} would be evicted, {len(document['refused'])} refused")
    else:
        go = sum(not move["shadow"] for move in moves)
        text.append(f"{go} go, {len(moves) - go} only shown, {len(document['refused'])} refused")
    return text


def last_round(several: Sequence[Mapping[str, Any]]) -> list[str]:
    """The last round of a descheduler: who decides, each strategy, then as ``lines``."""
    return [line for document in several for line in _last_round(document)]


def _last_round(document: Mapping[str, Any]) -> list[str]:
    role = "leads" if document["leading"] else "does not lead"
    mode = ", only shows" if document["dryRun"] else ""
    if document["ended"] is None:
        return [f"it {role}{mode}; no round is over yet"]
    text = [f"it {role}{mode}; last round {document['ended']}, {document['seconds']:g} s"]
    if document["idleSeconds"] or document["idleReason"]:
        idle, why = f"{document['idleSeconds']:.0f} s", document["idleReason"]
        text.append(f"! something should move, and nothing has for {idle}: {why}")
    rows = [
        (
            *(run["strategy"], run["profile"], f"{run['seconds']:.3f}", str(run["sources"])),
            *(str(run["wanted"]), str(run["moved"])),
            ", ".join(f"{count} {why}" for why, count in run["refused"].items()) or "-",
        )
        for run in document["strategies"]
    ]
    if rows:
        head = ("STRATEGY", "PROFILE", "SECONDS", "SOURCES", "WANTED", "MOVED", "REFUSED")
        text += output.table(rows, head=head)
    return [*text, *lines(document)]


def explained(explanation: Mapping[str, Any]) -> list[str]:
    """Every check of one pod."""
    text = [f"{explanation['pod']} on {explanation['node']}"]
    for name, refusals in explanation["profiles"].items():
        text.append(f"  profile {name}: {'may be evicted' if not refusals else 'stays'}")
        text += (f"    ✗ {refusal}" for refusal in refusals)
    fits = explanation["fits"]
    shown = ", ".join(fits[:5]) + (f" and {len(fits) - 5} more" if len(fits) > 5 else "")
    text.append(f"  fits {shown}" if fits else "  ✗ fits no other node")
    if explanation["limiter"]:
        text.append(f"  ✗ limiter: {explanation['limiter']}")
    return text
