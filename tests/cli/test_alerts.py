"""``koordlet alerts``: what no Prometheus answers, and what follows of time.

What a real one answers is in ``test_alerts_of_prometheus``.
"""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from koordlet import cli
from koordlet.cli import alerts
from koordlet.model import errors
from tests.deploy.documents import DEPLOY

ALERT = {"name": "KoordletDown", "severity": "critical", "summary": "gone"}


class Prometheus(http.server.BaseHTTPRequestHandler):
    """Answers what the test has set, to whoever has the token."""

    listed: list[dict[str, object]]
    authorization = ""

    def do_GET(self) -> None:
        allowed = self.headers.get("Authorization", "") == self.authorization
        known = allowed and self.path == "/prom/api/v1/alerts"
        body = {"status": "success", "data": {"alerts": self.listed}} if known else {}
        text = json.dumps(body).encode()
        self.send_response(200 if known else 404)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        """Nothing on stderr."""


@pytest.fixture
def address() -> Iterator[str]:
    """Where one listens that lists nothing yet, for everybody."""
    Prometheus.listed, Prometheus.authorization = [], ""
    server = http.server.HTTPServer(("127.0.0.1", 0), Prometheus)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/prom"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def alert(name: str, state: str, **labels: str) -> dict[str, object]:
    """As Prometheus lists it."""
    return {
        "labels": {"alertname": name, **labels},
        "annotations": {"summary": "gone"},
        "state": state,
    }


def test_every_rule_has_the_prefix() -> None:
    """No alert of ours is overlooked for its name."""
    rules = [
        rule["alert"]
        for path in (DEPLOY / "alerts").glob("*.yaml")
        for group in yaml.safe_load(path.read_text())["groups"]
        for rule in group["rules"]
        if "alert" in rule
    ]
    assert len(rules) > 10
    assert [name for name in rules if not name.startswith(alerts._PREFIX)] == []


def test_silence_is_no_good_news(
    address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Who gets no answer fails, and names the server; with the right token there is one."""
    Prometheus.authorization = "Bearer secret"
    assert cli.main(["alerts", "--prometheus", address]) == 1
    assert f"koordlet: {address}: no Prometheus answers" in capsys.readouterr().err

    (tmp_path / "token").write_text("secret\n")
    words = ["alerts", "--prometheus", address, "--token-file", str(tmp_path / "token")]
    assert cli.main(words) == 0
    assert cli.main(["alerts", "--prometheus", "prometheus:9090"]) == 2


def test_an_answer_that_is_none_of_prometheus_is_told_as_such(
    address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A proxy's error page by its status, another document by what it lacks; no traceback."""
    assert cli.main(["alerts", "--prometheus", f"{address}/elsewhere"]) == 1
    assert "no Prometheus answers: 404 Not Found" in capsys.readouterr().err

    firing = alert("KoordletDown", "firing", severity="critical")
    for strange in ({**firing, "annotations": None}, {**firing, "labels": []}, {}):
        Prometheus.listed = [strange]
        assert cli.main(["alerts", "--prometheus", address]) == 1
        assert "no Prometheus answers: not as Prometheus does" in capsys.readouterr().err


@pytest.mark.parametrize(
    "server",
    ["http://[::1", "http://h:x", "http://h:99999", "http://user:word@h", "ftp://h", "http://"],
)
def test_what_is_no_address_of_a_server_is_named(
    server: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The option, and how it is spelled; exit 2."""
    assert cli.main(["alerts", "--prometheus", server]) == 2
    assert "koordlet: --prometheus: no address of a server" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "no token can be read"),
        (b"\xff\xfe", "no token can be read"),
        (b"a\nb", "holds more than a token"),
        (b"Bearer a", "holds more than a token"),
    ],
)
def test_a_bad_token_file_is_the_culprit_and_not_the_server(
    content: bytes | None, problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before anybody is asked; exit 2."""
    path = tmp_path / "token"
    if content is not None:
        path.write_bytes(content)

    assert cli.main(["alerts", "--prometheus", "http://h", "--token-file", str(path)]) == 2
    assert f"koordlet: {path}: {problem}" in capsys.readouterr().err


class Clock:
    """Time that passes by pauses alone."""

    now = 0.0

    def pause(self, seconds: float) -> None:
        self.now += seconds
        assert self.now < 10_000, "it never ends"


QUIET = alerts.Alerts([], frozenset())
FIRING = alerts.Alerts([ALERT], frozenset())


def pending(*names: str) -> alerts.Alerts:
    """Alerts that do not fire yet."""
    return alerts.Alerts([], frozenset(names))


def watched(clock: Clock, asked: Callable[[], alerts.Alerts], seconds: float) -> list[alerts.Alert]:
    """What the command hears, by a clock that passes by pauses alone."""
    return alerts.watch(asked, seconds, lambda: clock.now, clock.pause)


def test_it_watches_until_the_first_alert_or_the_end() -> None:
    """An answer that is missing between good ones is borne, more in a row are not."""
    clock = Clock()

    def late() -> alerts.Alerts:
        if clock.now == 10:
            raise errors.HostError("no answer")
        return FIRING if clock.now >= 20 else QUIET

    assert watched(clock, late, 60) == [ALERT]
    assert clock.now == 20
    assert watched(clock, lambda: QUIET, 30) == []
    assert clock.now == 50

    def silent() -> alerts.Alerts:
        raise errors.HostError("no answer")

    with pytest.raises(errors.HostError):
        watched(clock, silent, 60)
    assert clock.now == 65
    with pytest.raises(errors.HostError):
        watched(clock, silent, 0)
    assert clock.now == 65


def test_what_is_pending_at_the_end_is_awaited() -> None:
    """Most rules wait for minutes: one that fires later is heard, and what begins later is not."""
    clock = Clock()

    def begun() -> alerts.Alerts:
        if clock.now == 400:
            raise errors.HostError("no answer")
        return FIRING if clock.now >= 900 else pending("a")

    assert watched(clock, begun, 300) == [ALERT]
    assert clock.now == 900

    def passing() -> alerts.Alerts:
        if clock.now < 1500:
            return pending("b", "c")
        return pending("c", "d") if clock.now < 1600 else pending("d")

    assert watched(clock, passing, 300) == []
    assert clock.now == 1600


def test_a_single_look_awaits_nothing() -> None:
    """A person asks for what fires now."""
    clock = Clock()

    assert watched(clock, lambda: pending("a"), 0) == []
    assert clock.now == 0


def test_agents_have_time_to_run_what_is_watched() -> None:
    """It ends at once when they do; where they never do, the error says what they run."""
    clock = Clock()

    alerts.settle(lambda: "" if clock.now >= 100 else "old", lambda: clock.now, clock.pause)
    assert clock.now == 100
    with pytest.raises(errors.HostError, match="old after 300 s"):
        alerts.settle(lambda: "old", lambda: clock.now, clock.pause)
    assert clock.now == 400


@pytest.mark.parametrize("pool", ["1" * 64, "canary", "canary=12", f"canary={'X' * 64}"])
def test_a_pool_is_a_name_and_a_hash(pool: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The option is named with what it takes; exit 2."""
    with pytest.raises(SystemExit) as ended:
        cli.main(["alerts", "--prometheus=http://h", f"--pool={pool}"])

    assert ended.value.code == 2
    assert "argument --pool: a pool and a SHA-256" in capsys.readouterr().err
