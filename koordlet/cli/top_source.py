"""Gets the node's document for ``koordlet top``: from the agent, else from a pass of its own.

Covers: asking ``/api/v1/node``, observing this or a recorded machine with the same result.
Does not cover: showing it (``cli.top_screen``).
"""

from __future__ import annotations

import argparse
import dataclasses
import http.client
import json
import math
import time
import typing
from collections.abc import Callable, Mapping

import koordlet
from koordlet.agent import bootstrap, sources
from koordlet.agent import tick as ticks
from koordlet.model import best_effort, errors, observed
from koordlet.report import node_json, view

if typing.TYPE_CHECKING:
    from koordlet.config import sourced

Document = dict[str, object]

_TIMEOUT = 2.0
#: An answer, and a refusal that says why.
_ANSWERS = (http.client.OK, http.client.NOT_FOUND)
#: How often kubelet and API server are asked where no agent does.
_ASKED_SECONDS = 10.0
#: No document of a node is larger.
_MOST = 64 << 20


class Agent:
    """The running agent's HTTP API."""

    def __init__(self, address: str) -> None:
        self.name = f"agent at {address}"
        self._address = address

    def read(self) -> Document:
        """The node's newest document; ``HostError`` where nobody answers as an agent does."""
        return self.ask("/api/v1/node")

    def ask(self, path: str) -> Document:
        """Any document; ``HostError`` also where the agent knows no such thing."""
        try:
            connection = http.client.HTTPConnection(self._address, timeout=_TIMEOUT)
        except http.client.InvalidURL as error:
            raise errors.UsageError(
                str(error), culprit=self._address, fix="give HOST:PORT, such as 127.0.0.1:9316"
            ) from None
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            body = answer.read(_MOST)
            found = json.loads(body) if answer.status in _ANSWERS else None
        except (OSError, http.client.HTTPException) as error:
            why = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise _no_agent(self._address, why) from None
        except (ValueError, RecursionError):
            raise _no_agent(self._address, "what answers is another program") from None
        finally:
            connection.close()
        if not isinstance(found, dict) or found.get("version") != "v1":
            raise _no_agent(self._address, f"it answered {answer.status}")
        if answer.status != http.client.OK:
            raise _refused(found)
        return found


class Self:
    """No agent: this program looks, and does nothing."""

    def __init__(
        self,
        args: argparse.Namespace,
        config: sourced.Effective,
        tick: ticks.Tick | None = None,
    ) -> None:
        self.name = "no agent; observing"
        #: The last answers of the sources of workloads.
        self._told: observed.Observed | None = None
        self._tick = tick or bootstrap.open_tick(
            args, bootstrap.host(args), config, take=lambda: self._told
        )
        #: When kubelet and API server are asked next; never where there are none.
        self._due = 0.0

    def read(self) -> Document:
        """Look once, at who runs here as the sources said lately. Rates come with the second."""
        began = time.monotonic()
        if began >= self._due:
            told = sources.once(self._tick.effective.config, self._tick.host)
            self.tell(told)
            # A kubelet that hangs costs a twentieth of the time, not all of it.
            took = time.monotonic() - began
            self._due = math.inf if told is None else began + max(_ASKED_SECONDS, 20 * took)
        return node_json.document(self.look(), koordlet.__version__)

    def look(self, *, thorough: bool = False) -> view.ReportView:
        """Look once, for any document; ``thorough``: also where that takes a moment (disks)."""
        if thorough:
            self._tick.observation.prepare_single_pass()
        try:
            made = self._tick.draft({})
        finally:
            if thorough:
                self._tick.usage.close()
        limit = best_effort.idle(made.draft.plan.limit, "no agent runs here")
        return view.ReportView(
            epoch="",
            revision=0,
            mode="observe",
            ready=False,
            snapshot=made.snapshot,
            plan=dataclasses.replace(made.draft.plan, limit=limit),
            usage=view.PodCores(
                {pod.key: pod.group for pod in made.snapshot.pods}, made.used.groups
            ),
            used=made.used,
            predicted=made.predicted,
        )

    def tell(self, told: observed.Observed | None) -> None:
        """Workloads that a file lists, beside the configured ones."""
        self._told = told

    def settle(self, seconds: float, pause: Callable[[float], None] = time.sleep) -> None:
        """Look twice, at everything, so that there are rates. A recording has no second moment."""
        self._tick.observation.prepare_single_pass()
        self.read()
        if self._tick.host.live:
            pause(seconds)
        self._tick.usage.read_everything()

    def close(self) -> None:
        """Give back what looking needs."""
        self._tick.usage.close()


def choose(args: argparse.Namespace, changed: Mapping[str, object] | None = None) -> Agent | Self:
    """The agent if there is one; never for a recorded machine, nor with other values than its."""
    config = bootstrap.effective(args, changed or {})
    if changed:
        return Self(args, config)
    if args.address is not None:
        return Agent(args.address)
    if bootstrap.host(args).live and config.config.report.http.enabled:
        asked = Agent(config.config.report.http.address)
        try:
            asked.read()
        except errors.HostError:
            return Self(args, config)
        return asked
    return Self(args, config)


def _refused(document: Document) -> errors.KoordletError:
    said = document.get("error")
    why = said if isinstance(said, dict) else {}
    return errors.UsageError(
        str(why.get("message", "the agent refused")),
        culprit=str(why.get("culprit", "")),
        fix=str(why.get("fix", "")),
    )


def _no_agent(address: str, why: str) -> errors.HostError:
    return errors.HostError(
        f"no agent answers there: {why}",
        culprit=address,
        fix="start it with koordlet run, or leave --address away to look without it",
    )
