"""Answers have a share of the loop: who asks without end waits, and nobody else does."""

from __future__ import annotations

import http.client
import time
from collections.abc import Callable

import pytest

from koordlet.http import message, pace
from tests.http import conftest
from tests.kit import clocks

ASK = b"GET /work HTTP/1.1\r\nHost: localhost\r\n\r\n"
LAST = b"GET /work HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
SHARE = 0.2


class Work:
    """An endpoint that takes a known part of the loop's time."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        #: Processor time that all answers took, and when each was made.
        self.spent = 0.0
        self.at: list[float] = []

    def answer(self, _: message.HttpRequest) -> message.HttpResponse:
        """Work, then answer."""
        began = time.thread_time()
        while time.thread_time() - began < self.seconds:
            pass
        self.spent += time.thread_time() - began
        self.at.append(time.monotonic())
        return message.text("done\n")


def pipelined(served: conftest.Served, number: int) -> int:
    """All requests in one go; how many are answered."""
    return served.ask(ASK * (number - 1) + LAST).count(b"done\n")


def one_by_one(served: conftest.Served, number: int) -> int:
    """Each request as soon as the one before it is answered."""
    client = http.client.HTTPConnection(served.host, served.port, timeout=10)
    bodies = []
    for _ in range(number):
        client.request("GET", "/work")
        bodies.append(client.getresponse().read())
    client.close()
    return bodies.count(b"done\n")


@pytest.mark.parametrize("ask", [pipelined, one_by_one])
def test_one_connection_has_a_share_of_the_loop(
    serve: conftest.Serve, ask: Callable[[conftest.Served, int], int]
) -> None:
    """However fast it asks, its answers take no more than that; every one of them comes."""
    work, burst = Work(0.002), 0.02
    served = serve(("GET", "/work", work.answer), repeat_share=SHARE, repeat_burst_seconds=burst)

    assert ask(served, 100) == 100
    passed = work.at[-1] - work.at[0]
    # The first request is free, the last one may overdraw.
    assert work.spent - burst - 2 * work.seconds < SHARE * passed
    # On a busy machine the client itself may be slower than the share.
    assert served.server.counts.get("delayed", 0) < 100


def test_connections_have_the_same_share(serve: conftest.Serve) -> None:
    """Beside one that has sent hundreds at once, another is answered once for each of its own."""
    asked: list[str] = []

    def answer(request: message.HttpRequest) -> message.HttpResponse:
        asked.append(request.path)
        return work.answer(request)

    work = Work(0.002)
    rows = [("GET", path, answer) for path in ("/work", "/own")]
    served = serve(*rows, repeat_share=SHARE, repeat_burst_seconds=0.001)
    with served.connect() as greedy:
        greedy.sendall(ASK * 300)
        served.wait_for(lambda: len(asked) > 3)
        answers = served.ask((ASK * 49 + LAST).replace(b"work", b"own"))

    assert answers.count(b"done\n") == 50
    between = asked[asked.index("/own") :]
    assert between.count("/own") == 50
    last = len(between) - between[::-1].index("/own")
    assert 48 <= between[:last].count("/work") <= 52


def test_a_newcomer_never_waits(serve: conftest.Serve) -> None:
    """The first request of a connection is answered while others wait for their turn."""
    work = Work(0.002)
    served = serve(("GET", "/work", work.answer), repeat_share=1e-6, repeat_burst_seconds=0.001)
    with served.connect() as greedy:
        greedy.sendall(ASK * 100)
        served.wait_for(lambda: served.loop.call(lambda: len(served.server.pace)) == 1)
        answered = len(work.at)

        assert [served.get("/")[0] for _ in range(20)] == [200] * 20
        assert answered == len(work.at)


def test_who_goes_while_it_waits_is_forgotten(serve: conftest.Serve) -> None:
    """A stop ends those that wait, and none of them is told of a turn any more."""
    served = serve(("GET", "/work", Work(0.002).answer), repeat_share=1e-6)
    served.server.pace.spend(10.0)
    with served.connect() as greedy:
        greedy.sendall(ASK * 10)
        served.wait_for(lambda: served.loop.call(lambda: len(served.server.pace)) == 1)
        served.loop.run(served.server.stop())

        assert conftest.read_all(greedy).count(b"done\n") == 1
    assert len(served.server.pace) == 0


def test_a_console_is_not_delayed(serve: conftest.Serve) -> None:
    """Twenty connections with several requests each, all sent at once, as the server is shipped."""
    served = serve(("GET", "/work", Work(0.002).answer))
    clients = [served.connect() for _ in range(20)]
    for each in clients:
        each.sendall(ASK * 4 + LAST)

    assert [conftest.read_all(each).count(b"done\n") for each in clients] == [5] * 20
    for each in clients:
        each.close()
    assert "delayed" not in served.server.counts


class Asking:
    """A client that is always told, and asks when a test wants it."""

    def __init__(self) -> None:
        self.told = 0

    def again(self) -> None:
        """Count."""
        self.told += 1


def test_a_scrape_every_second_is_never_delayed() -> None:
    """For an hour, at a tenth of a second of work each: half of the share is enough for ever."""
    clock, client, delays = clocks.Clock(0.0), Asking(), []
    timers: list[float] = []
    it = pace.RequestPace(
        SHARE,
        1.0,
        lambda: delays.append(clock.now),
        clock=clock,
        later=lambda seconds, _: timers.append(seconds),
    )
    for second in range(3600):
        clock.now = float(second)
        it.spend(0.1)
        it.turn(client)

    assert (delays, timers) == ([], [])
    assert client.told == 3600


def test_debt_is_paid_off_by_the_share() -> None:
    """Without credit the next turn comes when the debt is paid, in the order of those who wait."""
    clock, delays = clocks.Clock(0.0), []
    timers: list[tuple[float, Callable[[], None]]] = []
    it = pace.RequestPace(
        SHARE,
        1.0,
        lambda: delays.append(clock.now),
        clock=clock,
        later=lambda seconds, call: timers.append((seconds, call)),
    )
    first, second, gone = Asking(), Asking(), Asking()
    it.spend(3.0)
    for each in (first, gone, second):
        it.turn(each)
    it.leave(gone)
    [(seconds, call)] = timers
    clock.now = seconds * 0.9
    call()
    early = (first.told, second.told)
    clock.now = seconds + 0.01
    timers.pop()[1]()

    assert pytest.approx(seconds) == 2.0 / SHARE
    assert (early, (first.told, second.told, gone.told)) == ((0, 0), (1, 1, 0))
    assert len(delays) == 3
    assert len(it) == 0
