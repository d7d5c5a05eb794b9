"""Answers what ``examiner`` asks: reads, merges, validates.

Covers: a question in hand, and one on standard input.
Does not cover: the rules (``loader``, ``schema``).
"""

from __future__ import annotations

import gc
import sys

from koordlet.config import loader, parcel
from koordlet.model import errors


def answer(asked: parcel.Question) -> parcel.Answer:
    """The effective configuration, or what is wrong with it."""
    try:
        return loader.from_text(asked.text, asked.path, asked.env, asked.flags, kept=asked.kept)
    except errors.ConfigError as error:
        return error


def main() -> None:
    """One question, one answer."""
    gc.disable()  # it ends before there is garbage worth looking for
    asked = parcel.question(sys.stdin.buffer.read())
    sys.stdout.buffer.write(parcel.of_answer(answer(asked)))
