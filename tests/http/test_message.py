"""Requests and responses as values."""

from __future__ import annotations

import gzip
import json

import pytest

from koordlet.http import message, routes
from tests.http import conftest


def request(path: str = "/", method: str = "GET", **headers: str) -> message.HttpRequest:
    """A request; underscores in header names become dashes."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return message.HttpRequest(method=method, path=path, headers=named)


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        ("", "text/plain"),
        ("*/*", "text/plain"),
        ("application/json", "application/json"),
        ("application/json;q=0", "text/plain"),
        ("text/plain;q=0.3, application/json;version=1.0.0;q=0.5, */*;q=0.1", "application/json"),
        ("application/*", "application/json"),
        ("image/png", "text/plain"),
        ("application/json;q=nonsense", "text/plain"),
        (",;,=,", "text/plain"),
    ],
)
def test_prefers(accept: str, chosen: str) -> None:
    """The offer of the best quality is taken, the first one where none is better."""
    assert request(accept=accept).prefers("text/plain", "application/json") == chosen


@pytest.mark.parametrize(
    ("header", "taken"),
    [("gzip", True), ("br, GZIP;q=0.5", True), ("*", True), ("gzip;q=0", False), ("br", False)],
)
def test_takes_gzip(header: str, taken: bool) -> None:
    """Compression needs the client's word for it."""
    assert message.takes_gzip(request(accept_encoding=header)) is taken


def test_gzip_over_the_wire(serve: conftest.Serve) -> None:
    """A body over 1 KiB is packed when asked for, and only then; a small one never is."""
    served = serve()

    plain = served.get("/document")
    packed = served.get("/document", "Accept-Encoding: gzip")
    small = served.get("/", "Accept-Encoding: gzip")

    assert packed[1]["content-encoding"] == "gzip"
    assert gzip.decompress(packed[2]) == plain[2]
    assert "content-encoding" not in plain[1]
    assert "content-encoding" not in small[1]


def test_packed_once() -> None:
    """The same response is compressed once, however often it is sent."""
    made = message.document({"fill": "x" * 5000})

    assert made.packed() is made.packed()


@pytest.mark.parametrize("known", ["{tag}", '"other", {tag}', "*", "{strong}"])
def test_not_modified(known: str) -> None:
    """A client that has the document gets no body, and its tag again."""
    made = message.document({"version": "v1"})
    tag = made.headers["etag"]
    header = known.format(tag=tag, strong=tag.removeprefix("W/"))

    status, headers, body = message.finish(request(if_none_match=header), made, now=0.0)

    assert (304, tag, b"") == (status, dict(headers)["etag"], body)


def test_not_modified_over_the_wire(serve: conftest.Serve) -> None:
    """The connection goes on after an answer without a body."""
    served = serve()
    tag = served.get("/document")[1]["etag"].replace("w/", "W/")
    again = f"GET /document HTTP/1.1\r\nHost: localhost\r\nIf-None-Match: {tag}\r\n\r\n".encode()

    answers = served.ask(again + again)

    assert answers.count(b"HTTP/1.1 304 Not Modified") == 2


def test_modified(serve: conftest.Serve) -> None:
    """Another tag gets the document."""
    assert serve().get("/document", 'If-None-Match: W/"other"')[0] == 200


def test_tag_is_of_the_content() -> None:
    """Equal documents have equal tags, others do not."""
    first, same, other = (message.document({"n": n}).headers["etag"] for n in (1, 1, 2))

    assert first == same
    assert first != other


def test_error_form() -> None:
    """An error names code, message, culprit and fix."""
    made = message.error(404, "not_found", "no", culprit="/x", fix="look elsewhere")

    assert json.loads(made.body) == {
        "version": "v1",
        "error": {"code": "not_found", "message": "no", "culprit": "/x", "fix": "look elsewhere"},
    }


def test_a_name_that_is_no_text_costs_no_answer() -> None:
    """A check may name a file, whose name is any bytes."""
    assert message.text("in \udcff.yaml").body == b"in \\udcff.yaml"


def test_every_response_has_the_headers_that_browsers_need(serve: conftest.Serve) -> None:
    """No type is guessed, no answer is kept unseen."""
    _, headers, _ = serve().get("/")

    assert (headers["x-content-type-options"], headers["cache-control"]) == ("nosniff", "no-cache")


def test_date() -> None:
    """The date is in the fixed form of HTTP."""
    assert message.date(784111777) == "Sun, 06 Nov 1994 08:49:37 GMT"
    assert message.read_date("Sun, 06 Nov 1994 08:49:37 GMT") == 784111777
    no_times = ("", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun, 31 Feb 1994 08:49:37 GMT")
    for spelled in (*no_times, f"Sun, 06 Nov {10**20} 08:49:37 GMT"):
        assert message.read_date(spelled) is None


def test_unknown_path(serve: conftest.Serve) -> None:
    """404 says where to look."""
    status, _, body = serve().get("/nothing")

    assert (status, json.loads(body)["error"]["culprit"]) == (404, "/nothing")


def test_method_of_another_row() -> None:
    """405 names the methods of the path."""
    table = routes.Routes(conftest.STANDARD)

    made = table.answer(request("/echo"))

    assert (made.status, made.headers["allow"]) == (405, "POST")


def test_two_handlers_for_one_row() -> None:
    """A table with two answers to one question is a mistake of ours."""
    with pytest.raises(ValueError, match="two handlers"):
        routes.Routes([*conftest.STANDARD, conftest.STANDARD[0]])


class Heard:
    """A listener that keeps what it hears."""

    def __init__(self) -> None:
        self.events: list[bytes] = []

    def event(self, data: bytes) -> None:
        """One event."""
        self.events.append(data)


def test_nobody_listens() -> None:
    """Nothing is made."""
    made: list[bytes] = []

    def newest() -> bytes:
        made.append(b"x")
        return made[-1]

    message.Channel(newest).publish()

    assert not made


def test_everybody_hears_the_same_bytes() -> None:
    """A state is made once for all; a newcomer gets one at once, who left gets none."""
    states = iter([b"a", b"b", b"c", b"d"])
    channel = message.Channel(lambda: next(states))
    first, second = Heard(), Heard()
    channel.listen(first)
    channel.listen(second)
    channel.publish()
    channel.leave(first)
    channel.publish()

    assert first.events == [b"a", b"c"]
    assert second.events == [b"b", b"c", b"d"]
    assert channel.listeners == 1


def test_who_leaves_while_it_is_told() -> None:
    """The others are told all the same."""
    channel = message.Channel(lambda: b"x")
    last = Heard()

    class Leaving(Heard):
        def event(self, data: bytes) -> None:
            super().event(data)
            channel.leave(self)

    channel.listen(Leaving())
    channel.listen(last)
    channel.publish()

    assert last.events == [b"x", b"x"]
    assert channel.listeners == 1
