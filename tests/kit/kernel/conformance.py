"""Compares a machine with recorded answers, operation by operation.

Covers: where scripts and recordings are, the stand-in of a recorded machine, differences as text.
Does not cover: running (``session``).
"""

from __future__ import annotations

import pathlib

from tests.kit.kernel import actors, machine, script, session
from tests.kit.kernel.host import KernelHost

FOLDER = pathlib.Path(__file__).resolve().parents[3] / "fixtures" / "kernel"


def scripts() -> dict[str, script.Script]:
    """All scripts by name."""
    return {path.stem: script.Script.load(path) for path in sorted(FOLDER.glob("*.script"))}


def recordings() -> list[script.Recording]:
    """All recordings."""
    return [recording for path in sorted(FOLDER.glob("*.jsonl")) for recording in script.load(path)]


def stand_in(recording: script.Recording) -> KernelHost:
    """A machine in memory like the one that was recorded."""
    facts = recording.facts
    return machine.Machine(
        facts.cpus,
        {int(node): cpus for node, cpus in facts.nodes.items()},
        cgroup="v1" if recording.script.startswith("v1") else "v2",
        memory_nodes=facts.memory_nodes,
        kernel=facts.version,
        joined=facts.joined,
        rdt=facts.resctrl or None,
        l3={int(domain): cpus for domain, cpus in facts.l3.items()} or None,
    )


def replay(recording: script.Recording) -> script.Recording:
    """Runs the recorded script on its stand-in."""
    return session.record(
        scripts()[recording.script],
        actors.StandIn(stand_in(recording)),
        facts=recording.facts,
    )


def differences(expected: script.Recording, fresh: script.Recording) -> list[str]:
    """One text per operation that was answered differently."""
    if len(expected.answers) != len(fresh.answers):
        counts = f"{len(expected.answers)} recorded, {len(fresh.answers)} found"
        return [f"{expected.script}: not the same number of operations: {counts}"]
    return [
        f"{expected.script}, operation {number}: {want.op}\n"
        f"  recorded ({expected.facts.kernel}): {want.answer} {' '.join(want.reads)}\n"
        f"  found ({fresh.facts.kernel}):    {got.answer} {' '.join(got.reads)}"
        for number, (want, got) in enumerate(
            zip(expected.answers, fresh.answers, strict=True), start=1
        )
        if want != got
    ]


def compare(facts: script.Facts, fresh: list[script.Recording]) -> tuple[list[str], list[str]]:
    """Differences of fresh runs from the nearest recordings, and what was compared."""
    known = recordings()
    wrong: list[str] = []
    compared: list[str] = []
    ran = {recording.script: recording for recording in fresh}
    for name, program in scripts().items():
        nearest = script.nearest(known, name, facts)
        if name not in ran:
            compared.append(f"{name}: not run here, needs {' '.join(program.missing(facts))}")
        elif nearest is None:
            compared.append(f"{name}: run, but no kernel up to {facts.kernel} was recorded")
        else:
            wrong += differences(nearest, ran[name])
            compared.append(
                f"{name}: {len(program.operations)} operations, kernel {nearest.facts.kernel}"
            )
    return wrong, compared
