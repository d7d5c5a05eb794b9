"""Where ``koordlet top`` gets the node's document: from the running agent, else by looking itself.

Covers: asking ``/api/v1/node``, observing this or a recorded machine with the same result.
Does not cover: showing it (``cli.top_screen``).
"""

from __future__ import annotations

import argparse
import http.client
import json
import time
from collections.abc import Callable

import koordlet
from koordlet import opening
from koordlet.config import loader
from koordlet.model import errors
from koordlet.report import node_json, view

Document = dict[str, object]

_TIMEOUT = 2.0
#: No document of a node is larger.
_MOST = 64 << 20


class Agent:
    """The running agent's HTTP API."""

    def __init__(self, address: str) -> None:
        self.name = f"agent at {address}"
        self._address = address

    def read(self) -> Document:
        """The newest document; ``HostError`` where nobody answers as an agent does."""
        connection = http.client.HTTPConnection(self._address, timeout=_TIMEOUT)
        try:
            connection.request("GET", "/api/v1/node")
            answer = connection.getresponse()
            body = answer.read(_MOST)
            found = json.loads(body) if answer.status == http.client.OK else None
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise _no_agent(self._address, str(error) or type(error).__name__) from None
        finally:
            connection.close()
        if not isinstance(found, dict) or found.get("version") != "v1":
            raise _no_agent(self._address, f"it answered {answer.status}")
        return found


class Self:
    """No agent: this program looks, and does nothing."""

    def __init__(self, args: argparse.Namespace, config: loader.Effective) -> None:
        self.name = "no agent; observing"
        self._line = opening.open_line(args, opening.host(args), config)

    def read(self) -> Document:
        """Look once. Rates come with the second look."""
        made = self._line.run_once({})
        now = view.View(
            epoch="",
            revision=0,
            mode="observe",
            ready=False,
            snapshot=made.snapshot,
            plan=made.draft.plan,
            used=made.used,
            predicted=made.predicted,
        )
        return node_json.document(now, koordlet.__version__)

    def settle(self, seconds: float, pause: Callable[[float], None] = time.sleep) -> None:
        """Look twice, so that there are rates. A recording has no second moment."""
        self.read()
        if self._line.host.live:
            pause(seconds)


def choose(args: argparse.Namespace) -> Agent | Self:
    """The agent if there is one; never for a recorded machine."""
    config = opening.effective(args, {})
    if args.address is not None:
        return Agent(args.address)
    if opening.host(args).live and config.config.report.http.enabled:
        asked = Agent(config.config.report.http.address)
        try:
            asked.read()
        except errors.HostError:
            return Self(args, config)
        return asked
    return Self(args, config)


def _no_agent(address: str, why: str) -> errors.HostError:
    return errors.HostError(
        f"no agent answers there: {why}",
        culprit=address,
        fix="start it with koordlet run, or leave --address away to look without it",
    )
