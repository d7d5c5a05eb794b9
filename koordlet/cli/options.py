"""Options that several commands share, spelled and explained in one place."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence


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
        type=float,
        default=None,
        help="with --root: the time to take as now (default: the newest timestamp recorded)",
    )


def config(parser: argparse.ArgumentParser) -> None:
    """``--config``: the operator's file."""
    parser.add_argument(
        "--config",
        metavar="FILE",
        default=os.environ.get("KOORDLET_CONFIG") or None,
        help="configuration file (default: /etc/koordlet/config.yaml if it exists;"
        " also KOORDLET_CONFIG)",
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
        default=None,
        help="keep lock, socket, journal, checkpoints and audit log below DIR",
    )
    cgroup_root(parser)


def cgroup_root(parser: argparse.ArgumentParser) -> None:
    """``--cgroup-root``: where our groups are."""
    parser.add_argument(
        "--cgroup-root",
        metavar="GROUP",
        default=None,
        help="work below this cgroup instead of the root (as the kubelet's --cgroup-root)",
    )
