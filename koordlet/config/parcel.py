"""Messages between agent and examiner, as bytes.

Covers: the question, the answer, both as JSON and back.
Does not cover: carrying them (``examiner``), answering (``loader``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

import koordlet
from koordlet.config import plain, sourced
from koordlet.model import errors
from koordlet.model.record import dataclass

#: Of the environment, all that the configuration looks at begins so.
PREFIX = "KOORDLET_"
#: Not ours to judge: the command line's own.
COMMAND_LINE = frozenset({"KOORDLET_ROOT", "KOORDLET_CONFIG"})
#: Not configuration: test switches and handles.
IGNORED_PREFIXES = ("KOORDLET_K8S_", "KOORDLET_RDT_", "KOORDLET_TEST_")

Answer = sourced.Effective | errors.ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Input of a validation."""

    text: str | None
    path: str
    env: Mapping[str, str]
    flags: Mapping[str, object]
    #: The file had content before: that it has none now is no request for the defaults.
    kept: bool = False


def is_variable(name: str) -> bool:
    """True if a variable of the environment is configuration, or is meant to be."""
    ignored = name in COMMAND_LINE or name.startswith(IGNORED_PREFIXES)
    return name.startswith(PREFIX) and not ignored


def of_question(asked: Question) -> bytes:
    """A question on its way."""
    parts: dict[str, object] = {
        "text": asked.text,
        "path": asked.path,
        "env": {name: value for name, value in asked.env.items() if name.startswith(PREFIX)},
        "flags": {path: _spelled(flag) for path, flag in asked.flags.items()},
        "kept": asked.kept,
    }
    return _bytes(parts)


def question(data: bytes) -> Question:
    """Decode a question."""
    parts = json.loads(data)
    flags = {path: sourced.Flag(*flag) for path, flag in parts.pop("flags").items()}
    return Question(flags=flags, **parts)


def of_answer(answered: Answer) -> bytes:
    """An answer on its way."""
    if isinstance(answered, errors.ConfigError):
        refused = {"message": answered.message, "culprit": answered.culprit, "fix": answered.fix}
        return _bytes({"refused": refused})
    return _bytes(
        {
            "config": plain.packed(answered.config),
            "origins": dict(answered.origins),
            "warnings": answered.warnings,
            "path": answered.path,
            "version": koordlet.__version__,
        }
    )


def answer(data: bytes, asked: Question) -> Answer:
    """Decode an answer; ``ValueError``, ``LookupError``, ``TypeError`` for anything else."""
    parts: dict[str, Any] = json.loads(data)
    if "refused" in parts:
        return errors.ConfigError(**parts["refused"])
    if parts["version"] != koordlet.__version__:
        # The program was upgraded under the agent: its fields may be others.
        message = f"koordlet {parts['version']} is installed, and {koordlet.__version__} runs"
        return errors.ConfigError(message, culprit=asked.path, fix="restart the agent")
    return sourced.Effective(
        cast("Any", plain.unpacked(parts["config"])),
        parts["origins"],
        tuple(parts["warnings"]),
        parts["path"],
        asked.text,
    )


def _spelled(flag: object) -> sourced.Flag:
    return flag if isinstance(flag, sourced.Flag) else sourced.Flag(flag, "command line")


def _bytes(parts: Mapping[str, object]) -> bytes:
    # What a name of a file holds beyond UTF-8 has a spelling in ASCII.
    return json.dumps(parts).encode()
