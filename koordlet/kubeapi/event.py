"""Events of the API server (``events.k8s.io/v1``), which tell people about one object.

Covers: the body, within what ``events.k8s.io/v1`` accepts.
Does not cover: what happened, whether it is said again (who says it knows).

Facts: texts have limits in bytes (note 1 024, the others 128); an event lies in the namespace of
what it is about, or in ``default``; after it is made only its ``series`` may change, and a series
begins at two.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import UTC, datetime

from koordlet.kubeapi import kinds, objects
from koordlet.model.record import dataclass

_CONTROLLER = "koordlet.io/agent"
_NOTE, _WORD = 1024, 128
#: Of a name, which is a DNS subdomain; what makes it unique comes behind it.
_NAME = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The object that something happened to."""

    kind: kinds.Kind
    name: str
    namespace: str = ""
    #: Empty where it is not known: then ``kubectl describe`` does not show the event.
    uid: str = ""

    @property
    def room(self) -> str:
        """The namespace of events on it."""
        return self.namespace or "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """The content of one event."""

    subject: Subject
    #: What tells it from others on the same object, in the name of the event.
    name_suffix: str
    reason: str
    action: str
    message: str
    annotations: Mapping[str, str] = field(default_factory=dict)

    @property
    def ref(self) -> objects.Ref:
        """The name of the Event object."""
        name = f"{self.subject.name[:_NAME].rstrip('.-')}.{self.name_suffix}"
        return objects.Ref(kinds.EVENTS, name, self.subject.room)


def body(event: Event, node: str, at: float) -> objects.Object:
    """The Event object."""
    about, ref = event.subject, event.ref
    return {
        "apiVersion": kinds.EVENTS.api_version,
        "kind": kinds.EVENTS.name,
        "metadata": {
            "name": ref.name,
            "namespace": ref.namespace,
            "annotations": dict(event.annotations),
        },
        "eventTime": moment(at),
        "reportingController": _CONTROLLER,
        "reportingInstance": cut(node, _WORD),
        "action": cut(event.action, _WORD),
        "type": "Warning",
        "reason": cut(event.reason, _WORD),
        "note": cut(event.message, _NOTE),
        "regarding": {
            "apiVersion": about.kind.api_version,
            "kind": about.kind.name,
            "name": about.name,
            **({"namespace": about.namespace} if about.namespace else {}),
            **({"uid": about.uid} if about.uid else {}),
        },
    }


def moment(at: float) -> str:
    """A Unix time as a MicroTime."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def cut(text: str, most: int) -> str:
    """Cut a text to a number of bytes; a lone surrogate becomes a question mark."""
    return text.encode(errors="replace")[:most].decode(errors="ignore")
