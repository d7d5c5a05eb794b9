"""``koordlet explain SUBJECT ...``: why something is as it is.

Covers: the subjects, each with a module of its own (``explain_cpu``, …).
Does not cover: what is printed about one.

A subject's module has ``HELP``, ``add(parser)`` and ``run(args) -> int``, as a command has.
"""

from __future__ import annotations

import argparse
import importlib

EXAMPLES = """\
koordlet explain cpu 17                        who has this CPU, why, since when
koordlet explain pod shop/web-0                its CPUs, its files, what is wrong
koordlet explain eviction                      what runs out, who goes, in which order
koordlet explain eviction --eviction-hard 'memory.available<99%'  … and who would go, if
koordlet explain migration shop/web-0           why it is moved, or stays: every check
koordlet explain quota team-a                  what it may use now, step by step
koordlet explain write /sys/fs/cgroup/web/cpuset.cpus  who wants what there, what was there
koordlet explain cpu 17 --root machine.tar.gz  on a recorded machine
"""

#: In the order of the help page.
SUBJECTS = ("cpu", "eviction", "migration", "pod", "quota", "write")


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the subjects."""
    subjects = parser.add_subparsers(dest="subject", metavar="SUBJECT", required=True)
    for name in SUBJECTS:
        module = importlib.import_module(f"koordlet.cli.explain_{name}")
        about = [line for line in EXAMPLES.splitlines() if f" explain {name} " in line]
        subject = subjects.add_parser(
            name,
            help=module.HELP,
            description=f"Show {module.HELP}.",
            epilog="\n  ".join(["examples:", *about]),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add(subject)
        subject.set_defaults(explain=module.run)


def run(args: argparse.Namespace) -> int:
    """Explain it."""
    status: int = args.explain(args)
    return status
