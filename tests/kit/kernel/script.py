r"""Scripts of operations on cgroups, and what a kernel answered to each of them.

Covers: the language, needs of a script, recordings (JSON lines), the command line.
Does not cover: carrying operations out (``session``).

A script is a text file. ``#`` starts a comment line; the first lines may say what it needs::

    # needs: cgroup=v1 cpus=8 nodes=2 alone loop

``cpus=8`` is exactly 0-7, ``cpus>=2`` at least 0-1; ``kernel=6.1`` one version; ``alone`` a machine
where nothing else lives; ``loop`` one that has loop devices. Then one operation per line, words
quoted as in a shell, ``\n`` in a word is a newline::

    mkdir GROUP            rmdir GROUP
    write FILE TEXT        one write(2) of TEXT and a newline
    raw FILE TEXT          one write(2) of TEXT alone
    read FILE              keys FILE (first words only)        list GROUP
    spawn NAME [GROUP]     a sleeping process, moved into the group by cgroup.procs
    hog NAME BYTES GROUP   the same, and then it holds memory
    exit NAME              ends and reaps it
    wait NAME              waits until it was killed by something else
    disk NAME              a block device of its own: ``$NAME`` is its MAJOR:MINOR
    pin NAME CPUS          sched_setaffinity(2)
    affinity NAME          sched_getaffinity(2)
    online CPU             offline CPU
    open NAME FILE         pread NAME            close NAME
    until FILE TEXT        waits until the file contains the text
    mount [OPTIONS]        resctrl                     umount

``FILE`` and ``GROUP`` are relative to an empty test group; ``^`` is the root of the hierarchy. v1
names the hierarchy by a controller: ``cpuset:pod/cpuset.cpus``; ``resctrl:BE/tasks`` is below the
mount of resctrl itself. ``$NAME`` is the number of a process or disk, and numbers are shown as
``$NAME`` again. Files after ``|`` are read after the operation.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import pathlib
import re
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence

VERBS = {
    *("mkdir", "rmdir", "write", "raw", "read", "keys", "list", "spawn", "hog", "exit", "wait"),
    *("pin", "affinity", "online", "offline", "open", "pread", "close", "until", "disk"),
    *("mount", "umount"),
}
_NEED = re.compile(r"([a-z]+)(?:(>?=)(\S+))?\Z")


@dataclasses.dataclass(frozen=True)
class Operation:
    """One line of a script."""

    text: str
    verb: str
    words: tuple[str, ...]
    #: Files to read afterwards.
    reads: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> Operation:
        """Reads one line; ``ValueError`` when it is no operation."""
        words = [word.replace("\\n", "\n") for word in shlex.split(text)]
        verb, *rest = words
        if verb not in VERBS:
            msg = f"no such operation: {text!r}"
            raise ValueError(msg)
        cut = rest.index("|") if "|" in rest else len(rest)
        return cls(text, verb, tuple(rest[:cut]), tuple(rest[cut + 1 :]))


@dataclasses.dataclass(frozen=True)
class Answer:
    """What a kernel said to one operation."""

    op: str
    #: ``ok``, an errno name, or what was read.
    answer: str
    reads: tuple[str, ...] = ()

    def line(self) -> str:
        """As one line of a recording."""
        return json.dumps([self.op, self.answer, *self.reads], ensure_ascii=False)


@dataclasses.dataclass(frozen=True)
class Facts:
    """What must be known of a machine to choose scripts and to build its stand-in."""

    kernel: str
    cgroup: str
    cpus: str
    nodes: Mapping[str, str]
    memory_nodes: str
    #: Nothing else lives here, so CPUs may be switched off and taken away.
    alone: bool
    joined: bool
    #: What resource control there is, in the words of the emulator; empty without any.
    resctrl: str = ""
    #: L3 cache to its CPUs, where there is resource control.
    l3: Mapping[str, str] = dataclasses.field(default_factory=dict)
    #: Files can be made block devices.
    loop: bool = False

    @property
    def version(self) -> tuple[int, int]:
        """Major and minor version of the kernel."""
        major, minor = re.findall(r"\d+", self.kernel)[:2]
        return int(major), int(minor)


@dataclasses.dataclass(frozen=True)
class Script:
    """A parsed script."""

    name: str
    needs: tuple[str, ...]
    operations: tuple[Operation, ...]

    @classmethod
    def load(cls, path: pathlib.Path) -> Script:
        """Reads a script file."""
        return cls.parse(path.stem, path.read_text(encoding="utf-8"))

    @classmethod
    def parse(cls, name: str, text: str) -> Script:
        """Reads a script."""
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        needs = [line.removeprefix("# needs:") for line in lines if line.startswith("# needs:")]
        code = (line for line in lines if not line.startswith("#"))
        return cls(name, tuple(" ".join(needs).split()), tuple(map(Operation.parse, code)))

    def missing(self, facts: Facts) -> list[str]:
        """The needs that a machine does not meet."""
        return [need for need in self.needs if not _met(need, facts)]


def _met(need: str, facts: Facts) -> bool:
    match = _NEED.match(need)
    if match is None:
        msg = f"cannot read the need {need!r}"
        raise ValueError(msg)
    name, sign, value = match.groups()
    if name in ("alone", "loop"):
        return bool(getattr(facts, name))
    if name == "cgroup":
        return value in facts.cgroup.split("+")
    if name == "resctrl":
        return facts.resctrl == value
    if name == "kernel":
        return f"{facts.version[0]}.{facts.version[1]}" == value
    # CPUs and nodes of such machines are numbered from 0 without holes.
    count = len(facts.nodes) if name == "nodes" else int(facts.cpus.rpartition("-")[2]) + 1
    return count >= int(value) if sign == ">=" else count == int(value)


@dataclasses.dataclass(frozen=True)
class Recording:
    """One script with the answers of one kernel."""

    script: str
    facts: Facts
    answers: tuple[Answer, ...]

    @property
    def key(self) -> tuple[str, tuple[int, int]]:
        """There is one recording of a script per kernel version."""
        return self.script, self.facts.version

    def lines(self) -> Iterator[str]:
        """As JSON lines: a header, then one line per operation."""
        head = {"script": self.script, **dataclasses.asdict(self.facts)}
        yield json.dumps(head, ensure_ascii=False)
        for answer in self.answers:
            yield answer.line()


def recordings(lines: Iterable[str]) -> list[Recording]:
    """Reads recordings from JSON lines."""
    parts: list[tuple[str, Facts, list[Answer]]] = []
    for line in lines:
        value = json.loads(line)
        if isinstance(value, dict):
            name = value.pop("script")
            parts.append((name, Facts(**value), []))
        else:
            op, answer, *reads = value
            parts[-1][2].append(Answer(op, answer, tuple(reads)))
    return [Recording(name, facts, tuple(answers)) for name, facts, answers in parts]


def load(path: pathlib.Path) -> list[Recording]:
    """Reads a file of recordings."""
    return recordings(path.read_text(encoding="utf-8").splitlines())


def nearest(known: Sequence[Recording], script: str, facts: Facts) -> Recording | None:
    """The recording of the newest kernel that is not newer than this machine's."""
    older = [
        recording
        for recording in known
        if recording.script == script and recording.facts.version <= facts.version
    ]
    return max(older, key=lambda recording: recording.facts.version, default=None)


def merge(old: Iterable[Recording], new: Iterable[Recording]) -> list[Recording]:
    """New recordings replace old ones of the same script and kernel."""
    table = {recording.key: recording for recording in [*old, *new]}
    return [table[key] for key in sorted(table)]


def main(argv: Sequence[str] | None = None) -> int:
    """``run`` prints recordings of this machine; ``merge`` puts them into a file."""
    parser = argparse.ArgumentParser(prog="python3 -m tests.kit.kernel.script")
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="run scripts on this machine, print the answers")
    run.add_argument("scripts", nargs="+", type=pathlib.Path)
    run.add_argument("--cgroup-root", default="/", help="use only mounts below this path")
    run.add_argument("--alone", action="store_true", help="nothing else lives on this machine")
    run.add_argument("--resctrl", default="", help="what resource control this machine emulates")
    put = commands.add_parser("merge", help="put recordings from standard input into a file")
    put.add_argument("file", type=pathlib.Path)
    options = parser.parse_args(argv)
    if options.command == "merge":
        path: pathlib.Path = options.file
        known = load(path) if path.exists() else []
        merged = merge(known, recordings(sys.stdin))
        text = "".join(f"{line}\n" for recording in merged for line in recording.lines())
        path.write_text(text, encoding="utf-8")
        return 0
    return _run(
        [Script.load(path) for path in options.scripts],
        options.cgroup_root,
        options.alone,
        options.resctrl,
    )


def _run(
    scripts: Sequence[Script],
    below: str,
    alone: bool,
    resctrl: str,
) -> int:
    # Imported late: it imports this module.
    from tests.kit.kernel import actors, session

    real = actors.Real()
    facts = session.facts_of(real.host, below, alone=alone, resctrl=resctrl)
    for script in scripts:
        if missing := script.missing(facts):
            print(f"{script.name}: not run, needs {' '.join(missing)}", file=sys.stderr)
            continue
        for line in session.record(script, real, below, facts=facts).lines():
            print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
