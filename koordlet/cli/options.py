"""Options that several commands share, spelled and explained in one place."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from koordlet.config import sourced
from koordlet.model import cgroup, errors, moment

_MOST, _MOST_SECONDS, _MOST_PORT = 1_000_000, 1_000_000_000, 65_535


def declare(
    parser: argparse.ArgumentParser | argparse._ArgumentGroup,
    texts: Mapping[str, str],
    **more: Mapping[str, Any],
) -> None:
    """Declare options, spelled as the help page shows them: ``-f, --file FILE``.

    One without the name of a value is a switch, and an ``--address`` is checked. ``more``: what
    else is to be known of an option.
    """
    for spelled, text in texts.items():
        *flags, last = spelled.split(", ")
        flag, *names = last.split()
        form: dict[str, Any] = {"metavar": names[0]} if names else {"action": "store_true"}
        if len(names) > 1:
            form = {"metavar": tuple(names), "nargs": len(names)}
        form |= {"type": _address} if flag == "--address" else {}
        form |= more.get(flag.strip("-").replace("-", "_"), {})
        parser.add_argument(*flags, flag, help=text, **form)


_ROOT = {
    "--root DIR-or-ARCHIVE": "read a recorded machine instead of this one; never contacts the live"
    " system (also KOORDLET_ROOT)",
    "--now UNIX-TIME": "with --root: the time to take as now (default: the newest timestamp"
    " recorded)",
}
_CONFIG = {
    "--config FILE": "configuration file (default: /etc/koordlet/config.yaml if it exists;"
    " also KOORDLET_CONFIG)",
}
_STATE = {
    "--state-dir DIR": "keep lock, socket, journal, checkpoints and audit log below DIR, which must"
    " be yours and which nobody else may write to",
}
_CGROUP_ROOT = {
    "--cgroup-root GROUP": "work below this cgroup instead of the root (as the kubelet's"
    " --cgroup-root)",
}
_SET = {
    "--set KEY=VALUE": "as if the configuration said so: a dotted key as 'koordlet config' shows"
    " it, such as policies.cpu_suppress.cpuSuppressThresholdPercent=50 (several times)",
}


def root(parser: argparse.ArgumentParser) -> None:
    """``--root``: another machine's files instead of this kernel's."""
    default = os.environ.get("KOORDLET_ROOT") or None
    declare(parser, _ROOT, root={"default": default}, now={"type": _moment})


def count(text: str) -> int:
    """A number of things, at most a million."""
    value = int(text) if text.isdecimal() and len(text) <= len(str(_MOST)) else -1
    if not 0 <= value <= _MOST:
        raise argparse.ArgumentTypeError(f"from 0 to {_MOST}, not {text!r:.60}")
    return value


def number(text: str) -> float:
    """A number; what is none is below every bound."""
    try:
        return float(text)
    except ValueError:
        return -1.0


def seconds(text: str) -> float:
    """A span of time, at most 31 years: NaN and infinity would last for ever."""
    value = number(text)
    if not 0 <= value <= _MOST_SECONDS:
        raise argparse.ArgumentTypeError(f"from 0 to {_MOST_SECONDS} seconds, not {text!r}")
    return value


def _address(text: str) -> str:
    """Where somebody listens; a connection to a port that cannot be would be refused by another."""
    port = text.rstrip("/").rpartition(":")[2]
    if port.isdecimal() and not (text.startswith("unix:") or 0 < int(port) <= _MOST_PORT):
        raise argparse.ArgumentTypeError(f"a port is from 1 to {_MOST_PORT}, not {port}")
    return text


def _moment(text: str) -> float:
    """Seconds since 1970; NaN, infinity and years of five digits are no time of a machine."""
    value = number(text)
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
    declare(parser, _CONFIG, config={"default": os.environ.get("KOORDLET_CONFIG") or None})


def ignoring(parser: argparse.ArgumentParser) -> None:
    """Declare that keys of features which the scheduler lacks mean nothing."""
    parser.add_argument(
        "--ignore-unknown-scheduling-keys",
        dest="ignores_keys",
        action="store_true",
        help="place pods that name a gang or a quota as if they did not,"
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
    declare(parser, _STATE)
    cgroup_root(parser)


def cgroup_root(parser: argparse.ArgumentParser) -> None:
    """``--cgroup-root``: where our groups are."""
    declare(parser, _CGROUP_ROOT, cgroup_root={"type": _group})


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
    texts = {
        f"--eviction-{n} TEXT": f"policies.node_pressure.{key}" for n, key in _EVICTION.items()
    }
    compared = "the kubelet's own configuration, to be compared with (kubelet.configFile)"
    declare(group, {**texts, "--kubelet-config FILE": compared})


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


def changes(parser: argparse.ArgumentParser) -> None:
    """``--set``: what would be, with other values than the configuration has."""
    declare(parser, _SET, set={"dest": "changes", "action": "append", "default": []})


def changed(args: argparse.Namespace) -> dict[str, object]:
    """Read ``--set``, by path of the configuration."""
    from koordlet.config import catalog  # noqa: PLC0415 -- pydantic's models: 100 ms, for `--set` alone

    known = {field.path for field in catalog.fields()}
    settings: dict[str, object] = {}
    for text in args.changes:
        key, equals, value = text.partition("=")
        if not equals or key not in known:
            why = "is not KEY=VALUE" if not equals else f"no key {key} in the configuration"
            # There are hundreds: a list of all is no help.
            near = errors.nearest(key, known)
            fix = f'did you mean "{near}"?' if near else "see 'koordlet config'"
            raise errors.UsageError(why, culprit=f"--set {text}", fix=fix)
        settings[key] = sourced.Flag(value, "--set")
    return settings
