"""A recording as a source for ``koordlet top``: every moment's document, and the one that is shown.

Covers: playing the frames once, stepping. Does not cover: what policies would have done on it
(``cli.replay``), drawing (``top_screen``).
"""

from __future__ import annotations

import argparse
import math
import os

from koordlet.agent import tick as ticks
from koordlet.cli import node_source
from koordlet.config import loader
from koordlet.host.recording import player
from koordlet.report import documents


class RecordingSource(node_source.Self):
    """All moments of a recording; reading goes on to the next one, and stays at the last."""

    def __init__(self, args: argparse.Namespace) -> None:
        recording = player.Recording(args.replay)
        moments = recording.play()
        next(moments)
        config = loader.load(args.config, os.environ, {})
        listed = None if args.pods is None else node_source.listed(args.pods)
        tick = ticks.Tick(
            recording.host,
            config,
            base=args.cgroup_root,
            clock=recording.clock,
            take=lambda: listed,
        )
        super().__init__(args, config, tick)
        self._due = math.inf  # nobody of this machine is asked
        self.name = f"recording {args.replay}"
        self.documents: list[documents.Document] = []
        tick.usage.read_everything()
        while True:
            self.documents.append(super().read())
            if next(moments, None) is None:
                break
        self.moment = -1

    def read(self) -> documents.Document:
        """The next moment."""
        self.step(1)
        return self.documents[self.moment]

    def step(self, moments: int) -> None:
        """Go on, or back, within the recording."""
        self.moment = min(max(0, self.moment + moments), len(self.documents) - 1)


def recorded(args: argparse.Namespace) -> RecordingSource:
    """Play the archive of the command line."""
    return RecordingSource(args)
