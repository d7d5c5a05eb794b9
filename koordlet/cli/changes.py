"""``--set KEY=VALUE``: what would be, with other values than the configuration has."""

from __future__ import annotations

import argparse

from koordlet.config import catalog, sourced
from koordlet.model import errors


def add(parser: argparse.ArgumentParser) -> None:
    """``--set``: what would be, with other values."""
    parser.add_argument(
        "--set",
        dest="changes",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="as if the configuration said so: a dotted key as 'koordlet config' shows it, such as"
        " policies.cpu_suppress.cpuSuppressThresholdPercent=50 (several times)",
    )


def read(args: argparse.Namespace) -> dict[str, object]:
    """Read ``--set``, by path of the configuration."""
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
