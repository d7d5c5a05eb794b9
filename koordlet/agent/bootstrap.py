"""Builds what a command needs from its options: configuration, host, tick, an agent's wiring.

Covers: configuration, host, state paths, the choice between enforcing and observing, the
neighbours of an agent.
Does not cover: options themselves (``cli.options``), running (``loop``).
"""

from __future__ import annotations

import argparse
import functools
import os
import re
import time
import typing
from collections.abc import Callable, Mapping
from pathlib import Path

from koordlet.agent import sources as agent_sources
from koordlet.agent import tick
from koordlet.config import examiner, file_source, last_answer, parcel, sourced
from koordlet.host import machine
from koordlet.host.fs import root
from koordlet.host.recording import roots
from koordlet.model import cgroup, errors, knob, plan, pod, remember
from koordlet.model.record import dataclass
from koordlet.policy.framework import declaration, registry
from koordlet.state import last_config, paths

if typing.TYPE_CHECKING:
    from koordlet.agent import claim_driver, container_runtime, lifecycle, node_shutdown
    from koordlet.apply import evictor
    from koordlet.config import eviction_sections
    from koordlet.model import observed
    from koordlet.workloads import gatherer

#: The section of a configuration that names the state directory, and its name there: of a file
#: that is no YAML any more, too.
_STATE = re.compile(r"^state:(.*(?:\n(?:[ \t#].*)?)*)", re.MULTILINE)
_DIRECTORY = re.compile(r"^(?:[^#\n]*[{,])?[ \t]*dir:[ \t]*[\"']?(/[^\"'\s,}#]*)", re.MULTILINE)
#: What stays in force where a running agent refuses a file.
AS_BEFORE = "what it said before"


def effective(args: argparse.Namespace, flags: Mapping[str, object]) -> sourced.Effective:
    """Load the configuration, with the command line on top."""
    from koordlet.config import loader  # noqa: PLC0415 -- 10 MB of models that ``run`` does without

    return loader.load(args.config, os.environ, flags)


def lasting(args: argparse.Namespace, flags: Mapping[str, object]) -> sourced.Effective:
    """Load it for a process that stays: the models are loaded in another process, which ends."""
    return examiner.load(args.config, os.environ, flags)


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """The configuration that an agent starts with."""

    config: sourced.Effective
    #: Why the file is refused; ``None`` where it is in force.
    refused: errors.ConfigError | None = None
    #: What is in force instead of a refused file.
    instead: str = ""
    #: Whether it comes from a file, of now or earlier, and not from the built-in values alone.
    configured: bool = True
    #: What was asked for it, where that answer is to be kept for the next start.
    asked: parcel.Question | None = None


def start(args: argparse.Namespace, flags: Mapping[str, object]) -> Start:
    """Choose the configuration of an agent; a bad file does not keep an agent from starting.

    In place of a refused file: the last good one on disk; without that the built-in values,
    observing. An error on the command line or in the environment is raised: neither can be mended
    while the agent runs.
    """
    try:
        return _known(args, flags)
    except errors.ConfigError as error:
        refused = error
    bare = _validated(parcel.Question(text=None, path="", env=os.environ, flags=flags))
    if isinstance(bare, errors.ConfigError):
        raise refused
    chosen = getattr(args, "state_dir", None) or bare.config.state.dir
    where = paths.current(chosen or _named_directory(args.config)).last_config
    last, instead = _last_good(where, flags)
    if last is not None:
        return Start(config=last, refused=refused, instead=instead)
    observing = {**flags, "mode": sourced.Flag("observe", "no valid configuration")}
    config = _validated(parcel.Question(text=None, path="", env=os.environ, flags=observing))
    if isinstance(config, errors.ConfigError):
        raise refused
    instead = f"the built-in values, observing only, until the file is mended ({instead})"
    return Start(config=config, refused=refused, instead=instead, configured=False)


def _named_directory(path: str | None) -> str | None:
    """The state directory that a refused file names, as far as its text is one.

    It only says where to look: the text that is kept there is trusted no more than anywhere.
    """
    try:
        text = file_source.configured(path)[0] or ""
    except errors.ConfigError:
        return None
    section = _STATE.search(text)
    named = None if section is None else _DIRECTORY.search(section[1])
    return None if named is None else named[1]


def _known(args: argparse.Namespace, flags: Mapping[str, object]) -> Start:
    """The same, from disk where the last start asked the same; ``ConfigError`` for a bad file."""
    question = examiner.question(args.config, os.environ, flags)
    place = paths.current(getattr(args, "state_dir", None)).last_answer
    known = last_answer.load(place, question)
    if known is not None:
        return Start(config=known)
    config = examiner.answered(question)
    # The next start knows the default place, not what the file says.
    usual = state_paths(args, config).last_answer == place
    return Start(config=config, asked=question if usual else None)


def _last_good(where: Path, flags: Mapping[str, object]) -> tuple[sourced.Effective | None, str]:
    """Load the last good configuration, and its description; or why there is none."""
    try:
        text = last_config.load(where)
    except last_config.UntrustedError as error:
        return None, str(error)
    if text is None:
        return None, f"{where}: no last good configuration"
    last = _validated(parcel.Question(text=text, path=str(where), env=os.environ, flags=flags))
    if isinstance(last, errors.ConfigError):
        return None, str(last)
    return last, f"the last good configuration, {where}"


def _validated(question: parcel.Question) -> parcel.Answer:
    try:
        return examiner.answered(question)
    except errors.ConfigError as refused:
        return refused


def host(args: argparse.Namespace) -> root.HostRoot:
    """Open this machine, or the recorded one that ``--root`` or ``KOORDLET_ROOT`` names."""
    return roots.open_root(getattr(args, "root", None) or os.environ.get("KOORDLET_ROOT"))


def open_tick(
    args: argparse.Namespace,
    where: root.HostRoot,
    config: sourced.Effective,
    rows: tuple[declaration.Declared, ...] = registry.POLICIES,
    clock: Callable[[], machine.Now] | None = None,
    *,
    take: Callable[[], observed.Observed | None] | None = None,
    pods: tuple[pod.Pod, ...] = (),
    moves: bool | None = None,
) -> tick.Tick:
    """Open a tick on that machine, by its own clock, or by the time of a recording.

    ``take``, ``pods`` and ``moves`` are those of ``observation.Observation``.
    """
    if clock is None and not where.live:
        wall = getattr(args, "now", None)
        if wall is None:
            wall = newest(where)
        clock = functools.partial(machine.Now, at=wall, wall=wall)
    return tick.Tick(
        where,
        config,
        rows=rows,
        base=getattr(args, "cgroup_root", None),
        clock=clock or machine.now,
        take=take,
        pods=pods,
        moves=moves,
    )


def newest(where: root.HostRoot) -> float:
    """Find the newest timestamp in a recording: the moment that it was made."""
    times = []
    for path in (where.proc("stat"), where.proc("meminfo"), where.sys("devices/system/cpu/online")):
        try:
            times.append(where.stat(path).mtime)
        except OSError:
            continue
    return max(times, default=0.0)


def state_paths(args: argparse.Namespace, config: sourced.Effective) -> paths.Paths:
    """Choose where the agent's own files are."""
    return paths.current(getattr(args, "state_dir", None) or config.config.state.dir)


def unreadable(where: Path, error: OSError) -> errors.HostError:
    """Explain that this user may not read a file of the agent."""
    fix = "run as the user that the agent runs as, or give its --state-dir"
    return errors.HostError.of(error, "cannot be read", culprit=str(where), fix=fix)


def why_observe(config: sourced.Effective, layout: cgroup.Layout, *, live: bool = True) -> str:
    """Explain why this agent may only observe; empty when it may act. A recording needs no root."""
    if config.config.mode == "observe":
        return f"mode is observe ({config.origin('mode')})"
    if live and os.geteuid() != 0:
        return "not running as root"
    if layout.version is cgroup.Version.NONE:
        return "no cgroup hierarchy is mounted; mount one, usually at /sys/fs/cgroup"
    gap = layout.why_not(knob.CPUSET_CPUS)
    return gap.why if gap is not None else ""


def wire(
    config: sourced.Effective, where: root.HostRoot, sources: gatherer.Gatherer | None
) -> lifecycle.Wiring:
    """Choose the neighbours of an agent on that machine."""
    from koordlet.agent import lifecycle  # noqa: PLC0415 -- a command that runs once has no agent

    alone = agent_sources.choose(config.config, where).standalone
    nri = agent_sources.wants_runtime(config.config.nri, where, alone=alone)
    return lifecycle.Wiring(
        sources=sources,
        runtime=functools.partial(_runtime, config, alone=alone) if nri else None,
        driver=_driver(config, sources),
        evictor=functools.partial(_evictor, sources),
        shutdown=functools.partial(_shutdown, config, alone=alone) if where.live else None,
    )


def _runtime(
    config: sourced.Effective, agent: lifecycle.Agent, *, alone: bool
) -> container_runtime.Runtime:
    from koordlet.agent.nri import adapter  # noqa: PLC0415 -- only with a container runtime

    return adapter.NriAdapter(agent, config.config.nri, alone=alone)


def _driver(
    config: sourced.Effective, sources: gatherer.Gatherer | None
) -> Callable[[lifecycle.Agent], claim_driver.ClaimDriver] | None:
    """Choose the driver of resource claims: claims are the API server's."""
    if sources is None or sources.store is None:
        return None
    store, directory = sources.store, config.config.kubelet.directory or "/var/lib/kubelet"

    def make(agent: lifecycle.Agent) -> claim_driver.ClaimDriver:
        from koordlet.agent import dra_driver  # noqa: PLC0415 -- 1 MB that few nodes need

        return dra_driver.DraDriver(agent, sources, store, f"{directory}/plugins_registry")

    def late(agent: lifecycle.Agent) -> claim_driver.ClaimDriver:
        from koordlet.agent import claim_driver  # noqa: PLC0415 -- only with an API server
        from koordlet.policy.cpu import dra_driver as policy  # noqa: PLC0415 -- as all policies

        return claim_driver.LateDriver(
            lambda: agent.tick.modes[policy.STEM] is not plan.Mode.OFF,
            functools.partial(make, agent),
            at_once=agent.checkpoints.known(policy.STEM),
        )

    return late


def _shutdown(
    config: sourced.Effective, agent: lifecycle.Agent, *, alone: bool
) -> node_shutdown.NodeShutdown | None:
    """Choose what delays shutdowns: nothing, unless the configuration says how long."""
    section = config.config.node_shutdown
    if not (section.seconds or section.by_priority):
        return None
    from koordlet.agent import node_shutdown  # noqa: PLC0415 -- only where it is configured
    from koordlet.apply import local_eviction  # noqa: PLC0415 -- as the evictor's
    from koordlet.policy.eviction import node_shutdown as order  # noqa: PLC0415 -- the same

    listed = ((row.priority, row.seconds) for row in section.by_priority)
    return node_shutdown.NodeShutdown(
        order.rows(section.seconds, section.critical_seconds, listed),
        workloads=lambda: () if (now := agent.publisher.view) is None else now.snapshot.pods,
        end=local_eviction.LocalEviction(agent.tick.host, agent.tick.observer.layout),
        report=agent.publisher.record_alone,
        acting=lambda: alone and agent.enforce,
        record=agent.paths.node_shutdown,
    )


def _evictor(
    sources: gatherer.Gatherer | None, observing: tick.Tick, report: evictor.Report
) -> evictor.Evictor:
    from koordlet.apply import evictor  # noqa: PLC0415 -- a command that runs once evicts nothing

    backend = remember.last(functools.partial(_eviction_backend, sources, observing))

    def limits() -> evictor.Limits:
        section = observing.effective.config.policies.node_pressure.limits
        return evictor.Limits(in_flight=section.in_flight, per_minute=section.per_minute)

    return evictor.Evictor(
        lambda: backend(observing.effective.config.eviction), report=report, limits=limits
    )


def _eviction_backend(
    sources: gatherer.Gatherer | None, observing: tick.Tick, eviction: eviction_sections.Eviction
) -> evictor.Way | str:
    """Choose who evicts: the API server, or this machine; or say why nothing can."""
    alone = sources is None or sources.alone
    by = eviction.by if eviction.by != "auto" else ("local" if alone else "api")
    if by == "local":
        from koordlet.apply import local_eviction  # noqa: PLC0415 -- the other way needs none of it

        return local_eviction.LocalEviction(observing.host, observing.observer.layout)
    if sources is None or sources.store is None:
        return "no API server is configured: set kube.mode, or eviction.by: local"
    from koordlet.apply import api_eviction  # noqa: PLC0415 -- 8 ms of a start without an API server

    return api_eviction.ApiEviction(
        sources.store,
        node=observing.observation.node.name,
        clock=time.time,
        delete=by == "delete",
        dry_run=eviction.dry_run,
    )
