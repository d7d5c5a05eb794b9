"""A real Prometheus with our rules watches a real agent: an alert fires, and is over again.

Covers: scraping ``/metrics`` as it is, the rules as they are but for how long they wait.
Does not cover: how long that is (``tests.deploy.test_alert_times``).
"""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.kit import agents, deadline, live, needs

pytestmark = pytest.mark.e2e

_PROMTOOL = shutil.which("promtool")
_RULES = live.PROJECT / "deploy/alerts/koordlet.yaml"
#: Others may fire beside it: without their patience a busy host is enough for "late".
_NAME = "KoordletUnhealthy"
_RUNBOOKS = live.PROJECT / "docs/runbooks.md"


def _free() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


def _asked(address: str, path: str) -> bytes:
    with contextlib.suppress(OSError), urllib.request.urlopen(f"http://{address}{path}") as answer:
        return bytes(answer.read())
    return b""


@dataclass(frozen=True)
class Prometheus:
    """One that runs."""

    address: str

    def alerts(self) -> dict[str, dict[str, Any]]:
        """Those that fire, by name."""
        text = _asked(self.address, "/api/v1/alerts")
        listed = json.loads(text)["data"]["alerts"] if text else []
        return {
            alert["labels"]["alertname"]: alert for alert in listed if alert["state"] == "firing"
        }

    def scraped(self) -> bool:
        """Whether it has the agent's metrics."""
        text = _asked(self.address, "/api/v1/query?query=koordlet_ready==1")
        return bool(text and json.loads(text)["data"]["result"])


@contextlib.contextmanager
def prometheus(folder: Path, agent: str) -> Iterator[Prometheus]:
    """Watches an agent; rules wait for no time at all."""
    program = Path(str(_PROMTOOL)).resolve().with_name("prometheus")
    rules = yaml.safe_load(_RULES.read_text())
    for group in rules["groups"]:
        for rule in group["rules"]:
            rule.pop("for", None)
    (folder / "rules.yaml").write_text(yaml.safe_dump(rules))
    config = {
        "global": {"scrape_interval": "500ms", "evaluation_interval": "500ms"},
        "rule_files": ["rules.yaml"],
        "scrape_configs": [{"job_name": "koordlet", "static_configs": [{"targets": [agent]}]}],
    }
    (folder / "prometheus.yaml").write_text(yaml.safe_dump(config))
    address = _free()
    words = [str(program), f"--config.file={folder}/prometheus.yaml"]
    words += [f"--storage.tsdb.path={folder}/data", f"--web.listen-address={address}"]
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(words, stdout=log, stderr=log)
    try:
        yield Prometheus(address)
    finally:
        process.terminate()
        process.wait(deadline.PATIENCE)


@needs.program("promtool")
def test_a_broken_configuration_is_told(ram: Path) -> None:
    """Silent while all is well; it fires with the check's name, leads to its runbook, is over."""
    config, address = ram / "config.yaml", _free()
    config.write_text(agents.HEADER)
    words = [sys.executable, "-m", "koordlet", "run", "--observe", "--config", str(config)]
    state = ["--state-dir", str(ram / "state"), "--http", address]
    with contextlib.ExitStack() as stack:
        agent = live.Running([*words, *state], ram / "state")
        stack.callback(agent.close)
        agent.until("all surfaces up")
        server = stack.enter_context(prometheus(ram, address))
        deadline.until(server.scraped, "the agent is scraped")
        assert _NAME not in server.alerts()

        config.write_text(agents.HEADER + "mode: enforced\n")
        told = deadline.until(lambda: server.alerts().get(_NAME), "the alert fires")
        assert told["labels"]["check"] == "configuration"
        page, _, anchor = told["annotations"]["runbook_url"].partition("#")
        assert (page.rpartition("/")[2], anchor) == ("runbooks.html", _NAME.lower())
        assert f"\n## {_NAME}\n" in _RUNBOOKS.read_text()

        config.write_text(agents.HEADER)
        deadline.until(lambda: _NAME not in server.alerts(), "it is over")
