"""Options that several commands share, spelled and explained in one place."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from koordlet.config import sourced
from koordlet.model import cgroup, moment


def root(parser: argparse.ArgumentParser) -> None:
    """``--root``: another machine's files instead of this kernel's."""
    parser.add_argument(
        "--root",
        metavar="DIR-or-ARCHIVE",
        default=os.environ.get("KOORDLET_ROOT") or None,
        help="read a recorded machine instead of this one; never contacts the live system"
        " (also KOORDLET_ROOT)",
    )
    parser.add_argument(
        "--now",
        metavar="UNIX-TIME",
        type=_moment,
        help="with --root: the time to take as now (default: the newest timestamp recorded)",
    )


def _moment(text: str) -> float:
    """Seconds since 1970; NaN, infinity and years of five digits are no time of a machine."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= moment.LAST:
        raise argparse.ArgumentTypeError(f"not a time in Unix seconds: {text!r}")
    return value


def _group(text: str) -> str:
    """A group that stays below the root; slashes around it do not matter."""
    if text.strip("/") and not cgroup.is_plain(text.strip("/")):
        raise argparse.ArgumentTypeError(f"not a plain cgroup path such as /kubelet: {text!r}")
    return text


def config(parser: argparse.ArgumentParser) -> None:
    """``--config``: the operator's file."""
    parser.add_argument(
        "--config",
        metavar="FILE",
        default=os.environ.get("KOORDLET_CONFIG") or None,
        help="configuration file (default: /etc/koordlet/config.yaml if it exists;"
        " also KOORDLET_CONFIG)",
    )


def ignoring(parser: argparse.ArgumentParser) -> None:
    """Declare that keys of features which the scheduler lacks mean nothing."""
    parser.add_argument(
        "--ignore-unknown-scheduling-keys",
        dest="ignores_keys",
        action="store_true",
        help="place pods that name a gang, a quota or a hard scheduling hint as if they did not,"
        " where clusters carry such labels unused (default: they are refused by name)",
    )


def output(parser: argparse.ArgumentParser, choices: Sequence[str]) -> None:
    """``-o``: the form of what is printed."""
    parser.add_argument(
        "-o",
        "--output",
        choices=choices,
        default=choices[0],
        help=f"form of the output (default: {choices[0]})",
    )


def state(parser: argparse.ArgumentParser) -> None:
    """``--state-dir`` and ``--cgroup-root``: where we remember, and where we work."""
    parser.add_argument(
        "--state-dir",
        metavar="DIR",
        help="keep lock, socket, journal, checkpoints and audit log below DIR, which must be yours"
        " and which nobody else may write to",
    )
    cgroup_root(parser)


def cgroup_root(parser: argparse.ArgumentParser) -> None:
    """``--cgroup-root``: where our groups are."""
    parser.add_argument(
        "--cgroup-root",
        metavar="GROUP",
        type=_group,
        help="work below this cgroup instead of the root (as the kubelet's --cgroup-root)",
    )


#: The kubelet's flags of eviction, to where they go.
_EVICTION = {
    "hard": "evictionHard",
    "soft": "evictionSoft",
    "soft-grace-period": "evictionSoftGracePeriod",
    "minimum-reclaim": "evictionMinimumReclaim",
    "pressure-transition-period": "evictionPressureTransitionPeriod",
    "max-pod-grace-period": "evictionMaxPodGracePeriod",
}


def eviction(parser: argparse.ArgumentParser) -> None:
    """``--eviction-hard`` and the others, spelled as the kubelet's; and the kubelet's own file."""
    group = parser.add_argument_group("thresholds of eviction, spelled as for the kubelet")
    for name, key in _EVICTION.items():
        group.add_argument(
            f"--eviction-{name}",
            metavar="TEXT",
            help=f"policies.node_pressure.{key}",
        )
    group.add_argument(
        "--kubelet-config",
        metavar="FILE",
        help="the kubelet's own configuration, to be compared with (kubelet.configFile)",
    )


def eviction_flags(args: argparse.Namespace) -> dict[str, object]:
    """Read the options that were given, by path of the configuration."""
    flags: dict[str, object] = {}
    for name, key in _EVICTION.items():
        text = getattr(args, f"eviction_{name.replace('-', '_')}", None)
        if text is not None:
            path = f"policies.node_pressure.{key}"
            flags[path] = sourced.Flag(text, f"--eviction-{name}")
    if args.kubelet_config is not None:
        name = str(Path(args.kubelet_config).absolute())
        flags["kubelet.configFile"] = sourced.Flag(name, "--kubelet-config")
    return flags
