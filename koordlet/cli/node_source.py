"""Gets a node's documents to show or to explain: from the agent, else from a pass of its own.

Covers: the options, choosing, asking ``/api/v1``, observing this or a recorded machine with the
same result, reading a document. Does not cover: showing one (``top_screen``, ``explain_cpu``, …).

The agent knows since when a CPU is held and what it decided; a look of our own starts with an empty
memory, as ``koordlet plan`` does, and decides what an agent that starts now would decide.
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
from urllib.parse import quote

import koordlet
from koordlet.agent import bootstrap, sources
from koordlet.agent import tick as ticks
from koordlet.cli import options, output
from koordlet.model import best_effort, errors, observed
from koordlet.report import documents, node_json, plan_json, topology_json, view

if typing.TYPE_CHECKING:
    from koordlet.config import sourced

_TIMEOUT = 2.0
#: An answer, and a refusal that says why.
_ANSWERS = (http.client.OK, http.client.NOT_FOUND)
#: How often kubelet and API server are asked where no agent does.
_ASKED_SECONDS = 10.0
#: No document of a node is larger.
_MOST = 64 << 20
_OPTIONS = {
    "--address HOST:PORT": "HTTP address of the running agent (default: the configured one, if it"
    " answers)",
    "--pods FILE": "Pods as kubectl prints them, as for koordlet plan; the running agent is not"
    " asked",
}


class Agent:
    """The running agent's HTTP API."""

    def __init__(self, address: str) -> None:
        self.name = f"agent at {address}"
        self._address = address

    def read(self) -> documents.Document:
        """The node's newest document; ``HostError`` where nobody answers as an agent does."""
        return self.ask("/api/v1/node")

    def topology(self) -> documents.Document:
        """The machine."""
        return self.ask("/api/v1/topology")

    def cpus(self) -> documents.Document:
        """The owner map."""
        return self.ask("/api/v1/cpus")

    def pod(self, key: str) -> documents.Document:
        """One workload."""
        return self.ask(f"/api/v1/pod?name={quote(key)}")

    def ask(self, path: str) -> documents.Document:
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
            document = json.loads(body) if answer.status in _ANSWERS else None
        except (OSError, http.client.HTTPException) as error:
            why = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise _no_agent(self._address, why) from None
        except (ValueError, RecursionError):
            raise _no_agent(self._address, "what answers is another program") from None
        finally:
            connection.close()
        if not isinstance(document, dict) or document.get("version") != "v1":
            raise _no_agent(self._address, f"it answered {answer.status}")
        if answer.status != http.client.OK:
            raise _refused(document)
        return document


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
        self._heard: observed.Observed | None = None
        self._tick = tick or bootstrap.open_tick(
            args, bootstrap.host(args), config, take=lambda: self._heard
        )
        #: When kubelet and API server are asked next; never where there are none.
        self._due = 0.0

    def read(self) -> documents.Document:
        """Look once, at who runs here as the sources said lately. Rates come with the second."""
        began = time.monotonic()
        if began >= self._due:
            heard = sources.once(self._tick.effective.config, self._tick.host)
            self.tell(heard)
            # A kubelet that hangs costs a twentieth of the time, not all of it.
            took = time.monotonic() - began
            self._due = math.inf if heard is None else began + max(_ASKED_SECONDS, 20 * took)
        return node_json.document(self.look(), koordlet.__version__)

    def topology(self) -> documents.Document:
        """The machine."""
        return topology_json.document(self._tick.observer.topology)

    def cpus(self) -> documents.Document:
        """The owner map."""
        return topology_json.cpus(self.look())

    def pod(self, key: str) -> documents.Document:
        """One workload; ``UsageError`` for an unknown name."""
        return _pod(self.look(), key)

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

    def tell(self, heard: observed.Observed | None) -> None:
        """Workloads that a file lists, beside the configured ones."""
        self._heard = heard

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


#: Where documents come from.
Source = Agent | Self


def choose(args: argparse.Namespace, changed: Mapping[str, object] | None = None) -> Source:
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


def _refused(document: documents.Document) -> errors.KoordletError:
    error = document.get("error")
    why = error if isinstance(error, dict) else {}
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


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options that all subjects share."""
    options.root(parser)
    options.output(parser, ("table", "json"))
    add_source(parser)


def add_source(parser: argparse.ArgumentParser) -> None:
    """Declare where explanations come from."""
    options.config(parser)
    options.declare(parser, _OPTIONS)
    options.cgroup_root(parser)


def cpus(args: argparse.Namespace) -> documents.Document:
    """The owner map."""
    return _ask(args, "/api/v1/cpus", topology_json.cpus)


def plan(
    args: argparse.Namespace, changed: Mapping[str, object] | None = None
) -> documents.Document:
    """The plan, as ``koordlet plan -o json`` prints it; ``changed``: with other values."""
    path = "/api/v1/plan"
    return _ask(args, path, lambda now: plan_json.render(now.plan), changed, thorough=True)


def pod(args: argparse.Namespace, key: str) -> documents.Document:
    """Get the document of one workload; ``UsageError`` for an unknown name."""
    return _ask(args, f"/api/v1/pod?name={quote(key)}", lambda now: _pod(now, key))


def _pod(now: view.ReportView, key: str) -> documents.Document:
    document = node_json.pod(now, key)
    if document is None:
        known = ", ".join(sorted(pod.key for pod in now.snapshot.pods)[:5])
        raise errors.UsageError(
            "no workload here has this name",
            culprit=key,
            fix=f"one of: {known}" if known else "nothing is declared on this machine",
        )
    return document


def _ask(
    args: argparse.Namespace,
    path: str,
    make: Callable[[view.ReportView], documents.Document],
    changed: Mapping[str, object] | None = None,
    *,
    thorough: bool = False,
) -> documents.Document:
    config = bootstrap.effective(args, changed or {})
    source = choose(args, changed) if args.pods is None else Self(args, config)
    if isinstance(source, Agent):
        return source.ask(path)
    if args.pods is None:
        heard = sources.once(config.config, bootstrap.host(args))
        output.warn(sources.unheard(heard))
        source.tell(heard)
    else:
        source.tell(listed(args.pods))
    return make(source.look(thorough=thorough))


def listed(path: str) -> observed.Observed:
    """The workloads that a file lists, and the objects beside them; says what it leaves out."""
    from koordlet.workloads import manifests  # noqa: PLC0415 -- only who gives a file pays

    file = manifests.load(path)
    output.warn(file.warnings)
    return file.observed()
