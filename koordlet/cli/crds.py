"""``koordlet crds``: the definitions of the custom resources, for ``kubectl apply``."""

from __future__ import annotations

import argparse
import sys
import typing
from pathlib import Path

from koordlet.cli import options, output
from koordlet.model import errors

EXAMPLES = """\
koordlet crds | kubectl apply --server-side -f -
koordlet crds reservations              of one kind only
koordlet crds --before-1.30             for an API server that is older
koordlet crds --directory deploy/crds   one file for each kind
"""

_HEADER = "# Made by `koordlet crds`; do not edit.\n"


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("kinds", nargs="*", metavar="KIND", help="plurals; all without one")
    parser.add_argument("--directory", type=Path, help="write one file for each kind there")
    parser.add_argument(
        "--before-1.30",
        action="store_true",
        dest="old",
        help="without selectableFields: kubectl refuses what an older API server does not know",
    )
    options.output(parser, ("yaml", "json"))


def run(args: argparse.Namespace) -> int:
    """Print or write them."""
    # Late: pydantic models and YAML are of no use to any other command.
    from koordlet.report.crds import definitions  # noqa: PLC0415

    known = {definition.kind.plural: definition for definition in definitions.DEFINITIONS}
    for name in args.kinds:
        if name not in known:
            raise errors.UsageError(
                "no such kind of ours", culprit=name, fix=f"one of {', '.join(known)}"
            )
    chosen = [
        definitions.document(known[name], selectable=not args.old) for name in args.kinds or known
    ]
    if args.directory is not None:
        _write(args.directory, chosen)
    elif args.output == "json":
        output.print_json({"version": "v1", "items": chosen})
    else:
        sys.stdout.write("---\n".join(text(body) for body in chosen))
    return 0


def text(document: dict[str, typing.Any]) -> str:
    """Render one definition as a file of ``deploy/crds``."""
    import yaml  # noqa: PLC0415 -- 9 ms, of no use to another command

    return _HEADER + yaml.safe_dump(document, sort_keys=False, width=100, allow_unicode=True)


def _write(directory: Path, chosen: list[dict[str, typing.Any]]) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for body in chosen:
            (directory / f"{body['metadata']['name']}.yaml").write_text(text(body), "utf-8")
    except OSError as error:
        raise errors.HostError(
            f"cannot write the definitions: {error.strerror}",
            culprit=str(error.filename or directory),
            fix="name a directory that may be written",
        ) from error
