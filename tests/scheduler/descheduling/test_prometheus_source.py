"""What a Prometheus answers: shares by node, or why there are none."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.model import errors
from koordlet.scheduler.descheduling import prometheus_source
from koordlet.scheduler.descheduling.fields import Fields

QUERY = "instance:node_cpu:rate:sum"


def sample(node: str, share: str) -> dict[str, Any]:
    """One sample, as the server spells it."""
    metric = {"__name__": QUERY, **({"instance": node} if node else {})}
    return {"metric": metric, "value": [1728991761.711, share]}


def answer(*samples: object, kind: str = "vector") -> dict[str, Any]:
    """A whole answer."""
    return {"status": "success", "data": {"resultType": kind, "result": list(samples)}}


def test_shares_are_by_the_label_of_the_node() -> None:
    """As the peer's own test has them."""
    names = {"a.ec2.internal": "0.20381818181818104", "b.ec2.internal": "0.5695757575757561"}
    shares = prometheus_source.shares(answer(*(sample(*each) for each in names.items())))
    assert shares == {name: float(share) for name, share in names.items()}
    assert prometheus_source.shares(answer()) == {}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (answer(sample("", "0.2")), "a sample has no label instance"),
        (answer(sample("a", "1.2038")), "the sample of a is .* and not from 0 to 1"),
        (answer(sample("a", "-0.1")), "not from 0 to 1"),
        (answer(sample("a", "NaN")), "not from 0 to 1"),
        (answer({"metric": {"instance": "a"}, "value": []}), "not from 0 to 1"),
        (answer({"metric": {"instance": "a"}, "value": [0, 10**400]}), "not from 0 to 1"),
        (answer(1728991761.711, "0.2", kind="scalar"), "gives a scalar, and not a vector"),
        ({"status": "error", "error": "parse error"}, "the query failed: parse error"),
        (None, "the query failed"),
        ({"status": "success", "data": {"resultType": "vector", "result": [7]}}, "no label"),
    ],
)  # fmt: skip
def test_an_answer_that_makes_no_sense_says_why(body: object, message: str) -> None:
    """Nothing of it is taken."""
    with pytest.raises(ValueError, match=message):
        prometheus_source.shares(body)


@pytest.mark.parametrize("url", ["example.com:9090", "ftp://example.com", "http://"])
def test_an_address_needs_a_scheme_and_a_host(url: str) -> None:
    """The path names the key."""
    with pytest.raises(errors.ConfigError) as caught:
        prometheus_source.read(Fields({"url": url}, "f", "prometheus"))
    assert "prometheus.url" in str(caught.value)


def test_an_address_with_a_password_is_refused_without_showing_it() -> None:
    """It would not be sent, and addresses are logged."""
    with pytest.raises(errors.ConfigError) as caught:
        prometheus_source.read(Fields({"url": "http://me:hidden@host:9090"}, "f", "prometheus"))
    assert "has a user, who is not sent" in str(caught.value)
    assert "hidden" not in str(caught.value)
