"""``koordlet plan``: what would be done now, and why; changes nothing."""

from __future__ import annotations

import argparse
import functools
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from koordlet.agent import bootstrap, sources
from koordlet.agent import tick as ticks
from koordlet.cli import node_source, options, output
from koordlet.config import sourced
from koordlet.host.fs import root
from koordlet.model import action, cgroup, observed, plan, pod
from koordlet.policy.cpu import exclusive_cpus
from koordlet.report import plan_json
from koordlet.state import checkpoint

_RIGHT = "Nothing to do: everything is as it should be."
_WRONG = "Nothing to write; what is wrong is named below."
#: Why a CPU is in a pool.
_POOLS = {
    "LS": "neither reserved nor held by a workload alone",
    "BE": "neither reserved nor held by an LSE workload or a reservation",
}
EXAMPLES = """\
koordlet plan                                  this machine, this configuration
koordlet plan --config new.yaml                what a new configuration would change
koordlet plan --set policies.cpu_suppress.cpuSuppressThresholdPercent=50
kubectl get pods -A -o yaml > pods.yaml; koordlet plan --pods pods.yaml
koordlet plan --root machine.tar.gz -o json    a recorded machine, for programs
koordlet plan --defragment                     what would move, were CPUs chosen anew
"""
_OPTIONS = {
    "--pods FILE": "Pods as kubectl prints them, a List or several documents; with them one Node,"
    " NodeSLO, NodeMetric, and the ConfigMap slo-controller-config",
    "--defragment": "show what would move if CPUs that were chosen here were chosen anew; what is"
    " held comes from the agent's checkpoint (policies.exclusive_cpus.repack: true does it)",
}


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    options.config(parser)
    options.changes(parser)
    options.root(parser)
    options.output(parser, ("table", "json"))
    options.declare(parser, _OPTIONS)
    options.state(parser)
    options.eviction(parser)


def run(args: argparse.Namespace) -> int:
    """Print the plan of one pass with empty history and state, beside the claims that are held."""
    config = bootstrap.effective(args, {**options.changed(args), **options.eviction_flags(args)})
    host = bootstrap.host(args)
    told = functools.cache(lambda: ask_sources(args, config, host))
    tick = bootstrap.open_tick(args, host, config, take=told)
    hold_claims(args, tick)
    if args.defragment:
        _defragment(args, tick)
    try:
        tick.observation.prepare_single_pass()
        done = tick.draft({})
    finally:
        tick.usage.close()
    made = done.draft.plan
    return output.show(args.output, plan_json.render(made), lines(made, done.snapshot.pods))


def ask_sources(
    args: argparse.Namespace, config: sourced.Effective, host: root.HostRoot
) -> observed.Observed | None:
    """Read the pods of this node from a file, else from its sources."""
    if args.pods is not None:
        return node_source.listed(args.pods)
    told = sources.once(config.config, host, where=bootstrap.state_paths(args, config))
    output.warn(sources.unheard(told))
    return told


def _defragment(args: argparse.Namespace, tick: ticks.Tick) -> None:
    """Choose anew the CPUs that the running agent holds. A recorded machine has no agent."""
    stem = exclusive_cpus.STEM
    settings = cast("exclusive_cpus.Settings", tick.settings[stem])
    tick.override({stem: replace(settings, repack=True)})
    if not tick.host.live:
        output.say("a recorded machine remembers no CPUs that were chosen")
        return
    kept = checkpoints(args, tick)
    if kept is None:
        return
    state, problem = kept.revive(stem, exclusive_cpus.POLICY.schema, exclusive_cpus.POLICY.revive)
    if state is not None:
        tick.states[stem] = state
    if problem:
        output.say(problem)


def hold_claims(args: argparse.Namespace, tick: ticks.Tick) -> None:
    """Hold the resource claims that the agent which ran here last has prepared."""
    kept = checkpoints(args, tick) if tick.host.live else None
    if kept is None:
        return
    from koordlet.agent import claim_record  # noqa: PLC0415 -- only where an agent has been

    record, problem = claim_record.revive(kept)
    output.warn([problem] if problem else [])
    tick.observation.hold_claims(record.claims)


def checkpoints(args: argparse.Namespace, tick: ticks.Tick) -> checkpoint.Checkpoints | None:
    """Those of the agent that ran here last; ``None`` where it left none. Nothing is made."""
    where = bootstrap.state_paths(args, tick.effective).checkpoints
    try:
        os.scandir(where).close()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise bootstrap.unreadable(where, error) from error
    identity = tick.observer.identity
    return checkpoint.Checkpoints(where, machine_id=identity.machine_id, boot_id=identity.boot_id)


def lines(made: plan.Plan, pods: Sequence[pod.Pod] = ()) -> list[str]:
    """The plan as a person reads it: who owns what, what would change, what is wrong."""
    text = owners(made)
    if made.steps:
        text += ["", f"{len(made.steps)} actions by workload; the numbers are their order:"]
        for subject, steps in _by_workload(made.steps, pods).items():
            text += ["", f"{subject}:"]
            for step in steps:
                text += _step(step)
        text.append("")
    else:
        wrong = made.failures or any(condition.status for condition in made.conditions)
        text += ["", _WRONG if wrong else _RIGHT]
    text += evictions(made)
    for condition in made.conditions:
        if condition.status:
            text.append(f"! {condition.type} {condition.subject}: {condition.message}")
    text += (f"! policy {failure.policy} failed: {failure.error}" for failure in made.failures)
    text += (f"! not supported here: {gap.feature}: {gap.why}" for gap in made.unsupported)
    return text


def evictions(made: plan.Plan) -> list[str]:
    """List the pods that would be evicted, why, and which resource is short."""
    text = []
    for signal in made.signals:
        if signal.met:
            why = f"; {signal.why}" if signal.why else ""
            text.append(
                f"! {signal.name} is {signal.observed}, the threshold is {signal.threshold}{why}"
            )
    for victim in made.evictions:
        held = f" [not done: {victim.held}]" if victim.held else ""
        text.append(f"! evict {victim.pod} for {victim.signal}{held}")
        text.append(f"       {victim.policy}: {victim.message.strip()}")
    return text


def _by_workload(steps: Sequence[plan.Step], pods: Sequence[pod.Pod]) -> dict[str, list[plan.Step]]:
    """The steps of each workload, whose cgroup they are in or below; the first to act first."""
    keys = {workload.group: workload.key for workload in pods if workload.group is not None}
    by_owner: dict[str, list[plan.Step]] = {}
    for step in steps:
        group = step.action.group
        places = (group, *cgroup.ancestors(group)) if group else ()
        owner = next((keys[path] for path in places if path in keys), "this machine")
        by_owner.setdefault(owner, []).append(step)
    return by_owner


def owners(made: plan.Plan) -> list[str]:
    """Claims and pools as a table."""
    shadow = {stem: f"; not enforced, {stem} is in shadow" for stem in made.shadow}
    rows = [
        (claim.owner.value, str(claim.cpus), "", claim.reason + shadow.get(claim.policy, ""))
        for claim in made.ledger.claims
    ]
    rows += [
        (
            f"{pool.kind} pool",
            str(pool.cpus),
            "" if pool.node is None else str(pool.node),
            _POOLS.get(pool.kind, ""),
        )
        for pool in made.ledger.pools
    ]
    if not rows:
        return ["No CPU has an owner."]
    return output.table(rows, head=("OWNER", "CPUS", "NODE", "WHY"))


def _step(step: plan.Step) -> list[str]:
    wanted = step.action
    shadow = " [shadow]" if step.mode is plan.Mode.SHADOW else ""
    interim = " (on the way)" if step.interim else ""
    value = plan_json.value_of(wanted)
    change = f"  {step.was or 'unset'!s} → {value}" if isinstance(wanted, action.WriteFile) else ""
    return [
        f"{step.order:4} {action.kind(wanted)} {wanted.target}{change}{interim}{shadow}",
        f"       {wanted.policy}: {wanted.reason}",
    ]
