"""The command line: one module for each command.

Covers: finding the command, errors and exit codes, what all commands share, the word that was
probably meant where one is unknown.
Does not cover: the work itself; a command only runs a pass and prints. Values of options (each
option's own type).

A command's module has ``EXAMPLES``, ``add(parser)``, ``run(args) -> int``, and ``HELP`` where more
is to be said than in ``COMMANDS``. It is imported when its command was named: ``koordlet run`` does
not pay for others' tables. It answers for itself: its usage is shown, not that of the program.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import signal
import sys
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

import koordlet
from koordlet.agent import stop_signal
from koordlet.cli import output, streams
from koordlet.model import errors, printable

#: Command to its one line of help, in the order of the help page.
COMMANDS = {
    "run": "run the agent on this machine",
    "plan": "show what would be done now, and why; change nothing",
    "restore": "put everything back that koordlet changed",
    "check": "show what this machine supports, and what is missing",
    "config": "show the effective configuration and where each value comes from",
    "top": "show what runs here and what it uses, live",
    "topology": "show sockets, NUMA nodes, caches, cores and CPUs of this or a recorded machine",
    "resctrl": "show cache ways and memory bandwidth, and which group owns which of them",
    "explain": "show why a CPU, a pod, a file or a quota is as it is, and who would be moved",
    "trace": "tell one pass station by station: what was read and decided, why nothing is written",
    "get": "show the node, its workloads, or a scheduler's nodes, reservations, budgets",
    "watch": "follow the node, its workloads or reservations, until interrupted",
    "alerts": "show alerts of koordlet that a Prometheus fires; exit 1 where there is one",
    "audit": "show what was done here, when, to which pod, and why",
    "record": "record what the agent reads into one archive",
    "replay": "show what the policies would have done on a recording, moment by moment",
    "schedule": "hand pods to a standalone scheduler, and print where each went or why not",
    "scheduler": "decide which pod goes to which node, for a cluster or for standalone nodes",
    "descheduler": "decide which pods should leave their nodes, and evict them within limits",
    "webhook": "change a cluster's new pods as ClusterColocationProfiles say",
    "drain": "empty a node: room elsewhere first, as budgets and rates allow; or say when",
    "evict": "move one pod: room elsewhere first, then its eviction",
    "crds": "print the definitions of the custom resources",
    "reserve": "keep CPUs, memory and cache ways on a node for pods, a unit or a process",
    "describe": "tell all about one reservation, gang, migration, plan, quota or disruption budget",
    "migrate": "move a pod to another node, where room is held for its replacement first",
    "reschedule": "move others so that a pod fits that fits nowhere: room for all is held first",
    "delete": "remove a reservation; what draws on it keeps running",
    "sim": "show where the scheduler would put pending pods, and why not",
    "migrate-check": "show what changes where koordlet takes the place of Koordinator's agent",
    "completion": "print shell completion for bash, zsh or fish",
    "help": "show the commands, or what one of them does",
    "version": "show which koordlet this is",
}

#: Of descriptions: their examples keep their lines, so argparse wraps neither.
_WIDTH = 79
_EPILOG = """\
examples:
  koordlet check                          can this machine be managed?
  koordlet run --demo                     two busy processes, and what becomes of them
  koordlet plan                           what would change now, and why
  koordlet topology --root machine.tgz    a recorded machine
  koordlet COMMAND --help                 more about a command
"""


def parser(
    named: str | None, *, everything: bool = False, alone: bool = False
) -> argparse.ArgumentParser:
    """The parser; only the named command's options are loaded, or those of all.

    ``alone``: nothing will be said of other commands.
    """
    top = Parser(
        prog="koordlet",
        description="Run latency-sensitive and best-effort work side by side on one machine.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"koordlet {koordlet.__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, help_line in COMMANDS.items():
        if everything or name == named:
            module = importlib.import_module(f"koordlet.cli.{name.replace('-', '_')}")
            about = getattr(module, "HELP", help_line)
            subparser = commands.add_parser(
                name,
                help=help_line,
                description=textwrap.fill(f"{about[0].upper()}{about[1:]}.", _WIDTH),
                epilog=f"examples:\n{textwrap.indent(module.EXAMPLES, '  ')}",
                formatter_class=argparse.RawDescriptionHelpFormatter,
            )
            module.add(subparser)
            subparser.set_defaults(run=module.run)
        elif not alone:
            commands.add_parser(name, help=help_line)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the process's exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    args: argparse.Namespace | None = None
    try:
        args = _parsed(words)
        check_options(args)
        if not gc.isenabled():
            _begin()
        status: int = args.run(args)
        sys.stdout.flush()
    except errors.KoordletError as error:
        if isinstance(error, streams.LostError):
            streams.drop()
        output.print_error(error, as_json=getattr(args, "output", None) == "json")
        return error.status
    except BrokenPipeError:
        # The reader (head, less) has seen enough.
        streams.drop()
        return 0
    return status


def _parsed(words: Sequence[str]) -> argparse.Namespace:
    check_command(words, COMMANDS)
    named = next((word for word in words if not word.startswith("-")), None)
    # Whoever begins with a command asks for no list of all: each costs a millisecond.
    alone = named in COMMANDS and words[0] == named
    try:
        return parser(named, alone=alone).parse_args(words)
    except SystemExit:
        sys.stdout.flush()  # help and version are output, too
        raise


def _begin() -> None:
    """Release what ``__main__`` held back during the imports: garbage collection and Ctrl-C."""
    # Imported modules stay: from here on, only newer objects are collected.
    gc.freeze()
    gc.enable()
    if not stop_signal.listening() and callable(signal.getsignal(signal.SIGINT)):
        signal.signal(signal.SIGINT, signal.default_int_handler)


class Parser(argparse.ArgumentParser):
    """A parser that refuses what it does not know itself, and says what it knows."""

    def error(self, message: str) -> NoReturn:
        """Report an error; control characters of the words do not reach the terminal."""
        super().error(printable.escaped(message))

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Argparse's own refusal lists what there is; the nearest of it goes first."""
        if action.choices is not None and value not in action.choices:
            known = list(action.choices)
            near = errors.nearest(str(value), known)
            meant = f'did you mean "{near}"? ' if near else ""
            listed = ", ".join(map(str, known))
            message = f"invalid choice: {value!r} ({meant}choose from {listed})"
            raise argparse.ArgumentError(action, message)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Nothing is left over for the parser above."""
        parsed, unknown = super().parse_known_args(args, namespace)
        if unknown:
            option = next((argument for argument in unknown if argument.startswith("-")), None)
            known = list(self._option_string_actions)
            near = errors.nearest(option.partition("=")[0], known) if option is not None else None
            meant = f' (did you mean "{near}"?)' if near else ""
            self.error(f"unrecognized arguments: {' '.join(unknown)}{meant}")
        return parsed, []


def check_command(words: Sequence[str], known: Iterable[str]) -> None:
    """Refuse a command line whose first word is no command."""
    if words and words[0].startswith("-"):
        return  # for the program itself, such as --version
    if not words:
        raise errors.UsageError("no command", fix="koordlet --help lists them")
    if words[0] not in known:
        near = errors.nearest(words[0], known)
        fix = f'did you mean "{near}"?' if near else "koordlet --help lists them"
        raise errors.UsageError("no such command", culprit=words[0], fix=fix)


def check_options(args: argparse.Namespace) -> None:
    """Refuse an option that would be without effect: whoever gives it expects one."""
    if getattr(args, "now", None) is not None and getattr(args, "root", "") is None:
        raise errors.UsageError(
            "this machine has its own clock", culprit="--now", fix="name a recording with --root"
        )
