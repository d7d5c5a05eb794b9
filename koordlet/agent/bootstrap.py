"""From command-line options to an open line, for every command that needs one.

Covers: configuration, host, state paths, the choice between enforcing and observing.
Does not cover: options themselves (``cli.options``), running (``loop``).
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from koordlet.agent import tick
from koordlet.config import examiner, parcel, sourced
from koordlet.host import machine
from koordlet.host.fs import root
from koordlet.host.recording import roots
from koordlet.model import cgroup, errors, knob
from koordlet.model.record import dataclass
from koordlet.policy.framework import registry
from koordlet.state import last_config, paths

#: What stays in force where a running agent refuses a file.
AS_BEFORE = "what it said before"


def effective(args: argparse.Namespace, flags: Mapping[str, object]) -> sourced.Effective:
    """The configuration, with the command line on top."""
    from koordlet.config import loader  # noqa: PLC0415 -- 10 MB of models that ``run`` does without

    return loader.load(args.config, os.environ, flags)


def lasting(args: argparse.Namespace, flags: Mapping[str, object]) -> sourced.Effective:
    """The same for a process that stays: another one has the models in memory, and ends."""
    return examiner.load(args.config, os.environ, flags)


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """What an agent starts with."""

    config: sourced.Effective
    #: Why that is not what the file says; ``None`` where it is.
    refused: errors.ConfigError | None = None
    #: … and what it is instead.
    instead: str = ""
    #: Whether it is somebody's, and not what is built in for want of any.
    configured: bool = True


def start(args: argparse.Namespace, flags: Mapping[str, object]) -> Start:
    """The configuration of an agent, which no file keeps from starting.

    In place of a file that cannot be used: the last good one on disk; without any the built-in
    values, observing. What is wrong on the command line or in the environment is raised: there is
    nobody to mend that while the agent runs.
    """
    try:
        return Start(config=lasting(args, flags))
    except errors.ConfigError as error:
        refused = error
    bare = _asked(parcel.Question(text=None, path="", env=os.environ, flags=flags))
    if isinstance(bare, errors.ConfigError):
        raise refused
    where = state_paths(args, bare).last_config
    last, instead = _last_good(where, flags)
    if last is not None:
        return Start(config=last, refused=refused, instead=instead)
    observing = {**flags, "mode": sourced.Flag("observe", "no valid configuration")}
    config = _asked(parcel.Question(text=None, path="", env=os.environ, flags=observing))
    if isinstance(config, errors.ConfigError):
        raise refused
    instead = f"the built-in values, observing only, until the file is mended ({instead})"
    return Start(config=config, refused=refused, instead=instead, configured=False)


def _last_good(where: Path, flags: Mapping[str, object]) -> tuple[sourced.Effective | None, str]:
    """The last good configuration, and what it is; or why there is none."""
    try:
        text = last_config.load(where)
    except last_config.UntrustedError as error:
        return None, str(error)
    if text is None:
        return None, f"{where}: no last good configuration"
    found = _asked(parcel.Question(text=text, path=str(where), env=os.environ, flags=flags))
    if isinstance(found, errors.ConfigError):
        return None, str(found)
    return found, f"the last good configuration, {where}"


def _asked(question: parcel.Question) -> parcel.Answer:
    found = examiner.apart(question).answer(wait=True)
    if found is None:
        raise errors.BugError("whoever waits has an answer", culprit=question.path)
    return found


def host(args: argparse.Namespace) -> root.HostRoot:
    """This machine, or the recorded one that ``--root`` or ``KOORDLET_ROOT`` names."""
    return roots.open_root(getattr(args, "root", None) or os.environ.get("KOORDLET_ROOT"))


def open_tick(
    args: argparse.Namespace,
    where: root.HostRoot,
    config: sourced.Effective,
    rows: tuple[registry.Row, ...] = registry.POLICIES,
    clock: Callable[[], machine.Now] | None = None,
) -> tick.Tick:
    """The line on that machine, by its own clock unless another one is given."""
    return tick.Tick(
        where,
        config,
        rows=rows,
        base=getattr(args, "cgroup_root", None),
        clock=clock or _clock(args, where),
    )


def _clock(args: argparse.Namespace, where: root.HostRoot) -> Callable[[], machine.Now]:
    """This machine's clock; a recording's own time for a recording."""
    if where.live:
        return machine.now
    wall = getattr(args, "now", None)
    if wall is None:
        wall = newest(where)
    return lambda: machine.Now(at=wall, wall=wall)


def newest(where: root.HostRoot) -> float:
    """The newest timestamp in a recording: the moment that it was made."""
    times = []
    for path in (where.proc("stat"), where.proc("meminfo"), where.sys("devices/system/cpu/online")):
        try:
            times.append(where.stat(path).mtime)
        except OSError:
            continue
    return max(times, default=0.0)


def state_paths(args: argparse.Namespace, config: sourced.Effective) -> paths.Paths:
    """Where our own files are."""
    directory = getattr(args, "state_dir", None) or config.config.state.dir
    return paths.choose(os.environ, root=os.geteuid() == 0, state_dir=directory)


def unreadable(where: Path, error: OSError) -> errors.HostError:
    """What to do about a file of the agent that this user may not read."""
    fix = "run as the user that the agent runs as, or give its --state-dir"
    return errors.HostError.of(error, "cannot be read", culprit=str(where), fix=fix)


def why_observe(config: sourced.Effective, layout: cgroup.Layout, *, live: bool = True) -> str:
    """Why this agent may only observe; empty when it may act. What is not live needs no root."""
    if config.config.mode == "observe":
        return f"mode is observe ({config.origin('mode')})"
    if live and os.geteuid() != 0:
        return "not running as root"
    if layout.version is cgroup.Version.NONE:
        return "no cgroup hierarchy is mounted; mount one, usually at /sys/fs/cgroup"
    gap = layout.why_not(knob.CPUSET_CPUS)
    return gap.why if gap is not None else ""
