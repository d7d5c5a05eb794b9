"""What koordlet may do to a machine: a closed union, each kind with one row in ``apply.kinds``.

Covers: the kinds and their data. Does not cover: how a kind is diffed, ordered, done, verified and
undone (``apply``).

Rules:
1. An action is desired state: it says what shall be, not what changes. Diffing drops it when it is
   already so.
2. Every action has a policy and a reason that a person understands.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class MakeDir:
    """A group of our own shall exist at ``target``."""

    target: str
    policy: str
    reason: str
    group: str = ""
    #: Files (name, value) without which the new group is of no use: a v1 cpuset is born with empty
    #: sets and refuses every task. They are part of its birth, and go with it.
    initial: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteFile:
    """A kernel file shall hold ``value``."""

    target: str
    value: str
    policy: str
    reason: str
    #: The row of ``model.knob``, empty for a file outside the table.
    knob: str = ""
    group: str = ""
    #: A limit that protects others: rewritten at once when someone removes it.
    protective: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveTasks:
    """The processes shall be in the group whose ``cgroup.procs`` is ``target``."""

    target: str
    pids: tuple[int, ...]
    policy: str
    reason: str
    group: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveDir:
    """A group that we made shall be gone."""

    target: str
    policy: str
    reason: str
    group: str = ""


Action = MakeDir | WriteFile | MoveTasks | RemoveDir


def kind(action: Action) -> str:
    """The name of the kind, as plans and the journal print it."""
    return type(action).__name__
