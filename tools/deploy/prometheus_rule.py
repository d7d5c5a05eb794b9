"""The PrometheusRule objects of ``deploy/alerts/operator``, from the rules of ``deploy/alerts``.

python -m tools.deploy.prometheus_rule            writes them
python -m tools.deploy.prometheus_rule --check    fails where the file differs
"""

from __future__ import annotations

import sys
from pathlib import Path

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
PLACE = DEPLOY / "alerts/operator/prometheus-rules.yaml"
_HEAD = """\
# For a Prometheus operator: the rules of deploy/alerts/{name}.yaml as an object. Generated:
# python -m tools.deploy.prometheus_rule
---
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: koordlet-{name}
  namespace: koordlet-system
  labels: {{app.kubernetes.io/name: koordlet}}
spec:
"""


def text() -> str:
    """All objects."""
    return "".join(map(_object, ("koordlet", "recording", "scheduler", "descheduler")))


def _object(name: str) -> str:
    rules = (DEPLOY / "alerts" / f"{name}.yaml").read_text()
    body = rules[rules.index("groups:") :].splitlines()
    return _HEAD.format(name=name) + "".join(f"  {line}\n".replace("  \n", "\n") for line in body)


def main(words: list[str]) -> int:
    """Write, or compare."""
    if "--check" not in words:
        PLACE.parent.mkdir(exist_ok=True)
        PLACE.write_text(text())
        return 0
    if PLACE.read_text() == text():
        return 0
    sys.stderr.write(
        f"{PLACE.name} is not as generated; fix: python -m tools.deploy.prometheus_rule\n"
    )
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
