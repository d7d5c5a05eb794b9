"""What an answer that is no object becomes, and what the operator reads of it."""

from __future__ import annotations

import pytest

from koordlet.http import client
from koordlet.kube import answers
from koordlet.kubeapi import refusals

PAGE = b"<!DOCTYPE html>\n<html><head><title>%s</title></head><body>nginx</body></html>\n"
BETWEEN = "(check the server's address, and whether a proxy is in between)"


@pytest.mark.parametrize(
    ("status", "body", "says"),
    [
        (502, PAGE % b"502 Bad Gateway", f"pods: HTTP 502: 502 Bad Gateway {BETWEEN}"),
        (302, b'<a href="/login">Found</a>.\n', f"pods: HTTP 302: Found {BETWEEN}"),
        (500, b"<html>", f"pods: HTTP 500 {BETWEEN}"),
        (503, b"maintenance\nuntil noon", f"pods: HTTP 503: maintenance {BETWEEN}"),
        (307, b"", f"pods: HTTP 307 {BETWEEN}"),
        (
            429,
            b"Too many requests, please try again later.\n",
            "pods: HTTP 429: Too many requests, please try again later.",
        ),
        (403, b"no", "pods: HTTP 403: no (grant the permission in RBAC)"),
    ],
)
def test_an_answer_of_another_program_says_its_status_and_who_may_have_sent_it(
    status: int, body: bytes, says: str
) -> None:
    """The first line of a page is a tag, and nobody can do anything about that."""
    refusal = answers.refusal(client.ClientResponse(status, {}, body), "pods")

    assert str(refusal) == says


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b"404 page not found\n", refusals.NotServed),
        (b"", refusals.NotServed),
        (b'{"kind":"Status","code":404,"reason":"NotFound"}', refusals.NotServed),
        (b'{"kind":"Status","details":{"name":"a"}}', refusals.NotFound),
        (PAGE % b"404 Not Found", refusals.Unavailable),
        (b"default backend - 404", refusals.Unavailable),
    ],
)
def test_only_an_api_server_says_that_a_kind_is_not_served(
    body: bytes, error: type[refusals.ObjectsError]
) -> None:
    """What is not served is forgotten: the pods of a node, because a gateway lost its backend."""
    refusal = answers.refusal(client.ClientResponse(404, {}, body), "pods")

    assert type(refusal) is error


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("7", 7), ("86400", 300), ("inf", 300), ("0", None), ("-1", None), ("nan", None)],
)
def test_nobody_is_kept_away_for_a_day(header: str, seconds: float | None) -> None:
    """A page of maintenance may ask for any time; pods come and go meanwhile."""
    response = client.ClientResponse(503, {"retry-after": header})

    assert answers.refusal(response, "pods").retry_after == seconds
