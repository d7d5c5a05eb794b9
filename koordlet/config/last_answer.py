"""The configuration that an agent started with last, kept for its next start.

Covers: keeping an answer with its question, taking it where nothing differs that it depends on.
Does not cover: asking (``examiner``), who keeps and takes (``agent.bootstrap``).

Most starts ask what the one before asked: the same file, variables, options and program. Pydantic
and the models of all sections cost more than everything else until the first verified pass.

Rules:
1. Taken only from a file that nobody else can have written, with the answer's checksum: its values
   are not validated again. Whatever is wrong with it, the question is asked.
2. The question says what is asked, letter by letter. A program is known by its version and by the
   size and time of each file that answers come from: a checkout changes without its version.
3. An answer that depends on one more file, the kubelet's, is not kept.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator
from pathlib import Path

import koordlet
from koordlet.config import parcel, sourced
from koordlet.state import checkpoint, ownfiles

#: Rooms of which an answer needs modules.
ROOMS = ("config", "history", "kubeapi", "model", "policy")
#: A question holds a file of at most 1 MiB, the answer its values.
_MOST = 8 << 20


def load(path: Path, question: parcel.Question) -> sourced.Effective | None:
    """The answer to this very question; ``None`` where it has to be asked."""
    try:
        ownfiles.directory(path.parent, make=False)
        head, _, answer = ownfiles.read(path, _MOST).partition(b"\n")
        known = parcel.answer(answer, question) if head == _head(question, answer) else None
    except (OSError, ValueError, LookupError, TypeError):
        return None
    return known if isinstance(known, sourced.Effective) else None


def keep(path: Path, question: parcel.Question, answer: sourced.Effective) -> None:
    """Have it on disk, whole or not at all; ``OSError`` where that fails."""
    if answer.config.kubelet.config_file is None:
        packed = parcel.of_answer(answer)
        checkpoint.write_atomically(path, b"\n".join((_head(question, packed), packed)))


def _head(question: parcel.Question, answer: bytes) -> bytes:
    # JSON without indentation has no line ends.
    program = json.dumps(list(_program())).encode()
    return b"%s%s%08x" % (parcel.of_question(question), program, zlib.crc32(answer))


def _program() -> Iterator[tuple[str, int, int]]:
    home = os.path.dirname(koordlet.__file__)
    for room in ROOMS:
        for folder, _, names in os.walk(f"{home}/{room}"):
            for name in sorted(names):
                if name.endswith(".py"):
                    status = os.stat(f"{folder}/{name}")
                    yield f"{folder}/{name}", status.st_size, status.st_mtime_ns
