"""The use of nodes as a Prometheus tells it: where it is, and what its answer to a query says.

Covers: ``metricsProviders`` of a policy, an answer as shares by node. Does not cover: asking
(``process.prometheus_client``), what follows of it (``strategies.utilization``).
"""

from __future__ import annotations

import math
import urllib.parse
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from koordlet.model.record import dataclass
from koordlet.scheduler.descheduling.fields import Fields


@dataclass(frozen=True, slots=True)
class PrometheusSource:
    """Where a Prometheus is."""

    url: str
    #: Namespace and name of the Secret that has its token; empty: the account's own token.
    secret: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class QueryAnswer:
    """What a query said, or why it said nothing."""

    #: By node, from 0 to 1.
    shares: Mapping[str, float] = field(default_factory=dict)
    error: str = ""


NOT_ASKED = QueryAnswer(error="it was not asked")


def read(fields: Fields) -> PrometheusSource:
    """``prometheus`` of a provider."""
    url = fields.text("url")
    if not url:
        fields.fail("url", "is needed")
    try:
        parts = urllib.parse.urlsplit(url)
        known = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError as error:
        fields.fail("url", f"{url!r} is no URL: {error}")
    if not known:
        fields.fail("url", f"{url!r} does not begin with http:// or https:// and a host")
    if "@" in parts.netloc:
        fields.fail("url", "has a user, who is not sent", "name a Secret in authToken instead")
    secret = None
    if fields.get("authToken") is not None:
        token = fields.child("authToken")
        reference = token.child("secretReference")
        for key in ("namespace", "name"):
            if not reference.text(key):
                reference.fail(key, "is needed: the token is read from a Secret")
        secret = reference.text("namespace"), reference.text("name")
        reference.done()
        token.done()
    fields.done()
    return PrometheusSource(url, secret)


def shares(answer: object) -> dict[str, float]:
    """The shares in an answer; ``ValueError`` says what is wrong with it."""
    body: Mapping[str, Any] = answer if isinstance(answer, Mapping) else {}
    if body.get("status") != "success":
        raise ValueError(f"the query failed: {body.get('error') or 'it gives no reason'}")
    data = body.get("data")
    data = data if isinstance(data, Mapping) else {}
    if data.get("resultType") != "vector":
        raise ValueError(f"the query gives a {data.get('resultType')}, and not a vector")
    samples = data.get("result")
    return dict(map(_share, samples if isinstance(samples, list) else ()))


def _share(sample: object) -> tuple[str, float]:
    body: Mapping[str, Any] = sample if isinstance(sample, Mapping) else {}
    metric, value = body.get("metric"), body.get("value")
    node = metric.get("instance") if isinstance(metric, Mapping) else None
    if not node:
        raise ValueError("a sample has no label instance, which names its node")
    try:
        share = float(value[1]) if isinstance(value, list) else math.nan
    except (ValueError, TypeError, IndexError, OverflowError):
        share = math.nan
    if not 0 <= share <= 1:
        raise ValueError(f"the sample of {node} is {value!r}, and not from 0 to 1")
    return str(node), share
