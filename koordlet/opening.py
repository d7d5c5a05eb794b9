"""From command-line options to an open line, for every command that needs one.

Covers: configuration, host, state paths, the choice between enforcing and observing.
Does not cover: options themselves (``cli.options``), running (``daemon``).
"""

from __future__ import annotations

import argparse
import os
import typing
from collections.abc import Callable, Mapping
from pathlib import Path

from koordlet import line
from koordlet.config import examiner
from koordlet.host import machine, root, roots
from koordlet.model import cgroup, errors, knob
from koordlet.policy import registry
from koordlet.state import paths

if typing.TYPE_CHECKING:
    from koordlet.config import sourced


def effective(args: argparse.Namespace, flags: Mapping[str, object]) -> sourced.Effective:
    """The configuration, with the command line on top."""
    from koordlet.config import loader  # noqa: PLC0415 -- 10 MB of models that ``run`` does without

    return loader.load(args.config, os.environ, flags)


def lasting(args: argparse.Namespace, flags: Mapping[str, object]) -> sourced.Effective:
    """The same for a process that stays: another one has the models in memory, and ends."""
    return examiner.load(args.config, os.environ, flags)


def host(args: argparse.Namespace) -> root.HostRoot:
    """This machine, or the recorded one that ``--root`` or ``KOORDLET_ROOT`` names."""
    return roots.open_root(getattr(args, "root", None) or os.environ.get("KOORDLET_ROOT"))


def open_line(
    args: argparse.Namespace,
    where: root.HostRoot,
    config: sourced.Effective,
    rows: tuple[registry.Row, ...] = registry.POLICIES,
    clock: Callable[[], machine.Now] | None = None,
) -> line.Line:
    """The line on that machine, by its own clock unless another one is given."""
    return line.Line(
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
