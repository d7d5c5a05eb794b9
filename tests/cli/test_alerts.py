"""``koordlet alerts`` against a server that answers as Prometheus does."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
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
        body = {"status": "success", "data": {"alerts": self.listed}} if allowed else {}
        text = json.dumps(body).encode()
        self.send_response(200 if self.path == "/prom/api/v1/alerts" and allowed else 404)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        """Nothing on stderr."""


@pytest.fixture
def address() -> Iterator[str]:
    """Where it listens."""
    Prometheus.listed, Prometheus.authorization = [], ""
    server = http.server.HTTPServer(("127.0.0.1", 0), Prometheus)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/prom"
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


def test_only_grave_alerts_of_koordlet_that_fire_count(
    address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Others' alerts, pending ones and mere information stop no rollout."""
    quiet = [
        alert("NodeDown", "firing", severity="critical"),
        alert("KoordletDown", "pending", severity="critical"),
        alert("KoordletSeriesDropped", "firing", severity="info"),
    ]
    Prometheus.listed = quiet
    assert cli.main(["alerts", "--prometheus", address]) == 0
    assert capsys.readouterr().out == "no alert of koordlet fires\n"

    Prometheus.listed = [*quiet, alert("KoordletDown", "firing", severity="critical")]
    assert cli.main(["alerts", "--prometheus", address, "-o", "json"]) == 1
    assert json.loads(capsys.readouterr().out) == {"version": "v1", "alerts": [ALERT]}


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


def test_it_watches_until_the_first_alert_or_the_end() -> None:
    """An answer that is missing between good ones is borne, more in a row are not."""
    clock = Clock()

    def late() -> list[alerts.Alert]:
        if clock.now == 10:
            raise errors.HostError("no answer")
        return [ALERT] if clock.now >= 20 else []

    assert alerts.watch(late, 60, lambda: clock.now, clock.pause) == [ALERT]
    assert clock.now == 20
    assert alerts.watch(list, 30, lambda: clock.now, clock.pause) == []
    assert clock.now == 50

    def silent() -> list[alerts.Alert]:
        raise errors.HostError("no answer")

    with pytest.raises(errors.HostError):
        alerts.watch(silent, 60, lambda: clock.now, clock.pause)
    assert clock.now == 65
