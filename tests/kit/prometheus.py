"""A real Prometheus, with a test's scrapes and rules, which ends with the test.

Covers: its start until it is ready, other rules while it runs, what queries give, what fires.
Does not cover: refusals, tokens and answers that no Prometheus gives (the tests of each client).
"""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import shutil
import subprocess
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.kit import answers, deadline, needs

#: A mark for tests that start one; Debian's package prometheus has it.
NEEDED = needs.program("prometheus")

_SOON = {"scrape_interval": "1s", "evaluation_interval": "200ms"}
_NEVER = "0001-"

Groups = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Prometheus:
    """One that runs."""

    address: str
    folder: Path

    @property
    def url(self) -> str:
        """As its clients are told."""
        return f"http://{self.address}"

    def ask(self, path: str) -> Any:
        """What an answer of its API brings."""
        return answers.document(self.address, f"/api/v1/{path}")["data"]

    def rows(self, query: str) -> list[dict[str, Any]]:
        """The samples of a query."""
        answer = self.ask(f"query?{urllib.parse.urlencode({'query': query})}")
        rows: list[dict[str, Any]] = answer["result"]
        return rows

    def rules(self) -> list[dict[str, Any]]:
        """Each rule with its health."""
        return [rule for group in self.ask("rules")["groups"] for rule in group["rules"]]

    def alerts(self, state: str) -> dict[str, dict[str, Any]]:
        """Those in this state, by name."""
        listed = self.ask("alerts")["alerts"]
        return {row["labels"]["alertname"]: row for row in listed if row["state"] == state}

    def follow(self, groups: Groups) -> None:
        """Take these rules instead; each has been evaluated when this returns."""
        _write(self.folder / "rules.json", {"groups": groups})
        with contextlib.closing(http.client.HTTPConnection(self.address)) as connection:
            connection.request("POST", "/-/reload")
            assert connection.getresponse().status == http.client.OK, _log(self.folder)
        deadline.until(
            lambda: not any(rule["lastEvaluation"].startswith(_NEVER) for rule in self.rules()),
            "every rule is evaluated",
        )


@contextlib.contextmanager
def serving(folder: Path, *, host: str = "127.0.0.1", **jobs: str) -> Iterator[Prometheus]:
    """It scrapes each job's address, and follows no rule yet."""
    folder.mkdir(exist_ok=True)
    _write(folder / "rules.json", {"groups": []})
    scrapes = [
        {"job_name": job, "static_configs": [{"targets": [address]}]}
        for job, address in jobs.items()
    ]
    config = {"global": _SOON, "rule_files": ["rules.json"], "scrape_configs": scrapes}
    _write(folder / "prometheus.json", config)
    words = [str(shutil.which("prometheus")), f"--config.file={folder}/prometheus.json"]
    words += [f"--storage.tsdb.path={folder}/data", f"--web.listen-address={host}:0"]
    words += ["--web.enable-lifecycle", "--scrape.discovery-reload-interval=100ms"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(words, stdout=log, stderr=log)

    def ready() -> str | None:
        assert process.poll() is None, _log(folder)
        listens = re.search(r'"Listening on" address=(\S+)', _log(folder))
        if listens and answers.get(listens[1], "/-/ready")[0] == http.client.OK:
            return listens[1]
        return None

    try:
        yield Prometheus(deadline.until(ready, "Prometheus is ready"), folder)
    finally:
        process.terminate()
        process.wait(deadline.PATIENCE)


def _write(path: Path, document: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(document))  # which is YAML


def _log(folder: Path) -> str:
    return (folder / "log").read_text()
