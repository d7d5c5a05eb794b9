"""Pods as an API server and a kubelet write them, and as others might break them.

Covers: whole objects of realistic shape and size, by name; strategies for broken JSON.
"""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import strategies as st

#: A running pod of one container, with what else a kubelet reports of it.
PLAIN: dict[str, Any] = {
    "metadata": {
        "name": "web-0",
        "namespace": "shop",
        "uid": "0b6a7f0e-6a1e-4c1f-9f3f-000000000001",
        "resourceVersion": "4711",
        "labels": {"app": "web", "koordinator.sh/qosClass": "LS"},
        "annotations": {"kubernetes.io/config.seen": "2026-01-01T00:00:00Z"},
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "ownerReferences": [
            {"kind": "ReplicaSet", "name": "web", "uid": "8c1d", "controller": True}
        ],
    },
    "spec": {
        "volumes": [{"name": "token", "projected": {"sources": [{"configMap": {"name": "ca"}}]}}],
        "containers": [
            {
                "name": "nginx",
                "image": "registry.example/nginx:1.27",
                "ports": [{"containerPort": 80, "protocol": "TCP"}],
                "env": [{"name": f"VARIABLE_{n}", "value": "x" * 40} for n in range(20)],
                "resources": {
                    "limits": {"cpu": "1", "memory": "512Mi"},
                    "requests": {"cpu": "500m", "memory": "256Mi"},
                },
                "terminationMessagePath": "/dev/termination-log",
            }
        ],
        "restartPolicy": "Always",
        "nodeName": "n1",
        "priority": 9100,
        "priorityClassName": "koord-prod",
        "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}],
    },
    "status": {
        "phase": "Running",
        "qosClass": "Burstable",
        "podIP": "10.0.0.4",
        "startTime": "2026-01-01T00:00:01Z",
        "conditions": [{"type": "Ready", "status": "True", "reason": None}],
        "containerStatuses": [
            {
                "name": "nginx",
                "state": {"running": {"startedAt": "2026-01-01T00:00:02Z"}},
                "containerID": "containerd://" + "ab" * 32,
                "imageID": "registry.example/nginx@sha256:" + "cd" * 32,
                "ready": True,
                "restartCount": 0,
            }
        ],
    },
}


def pod(number: int = 1, **changes: Any) -> dict[str, Any]:
    """A plain pod with its own name and UID; keyword ``a__b`` sets ``body["a"]["b"]``."""
    body = copy.deepcopy(PLAIN)
    body["metadata"]["name"] = f"web-{number}"
    body["metadata"]["uid"] = f"0b6a7f0e-6a1e-4c1f-9f3f-{number:012x}"
    for path, value in changes.items():
        *parents, last = path.split("__")
        inner = body
        for part in parents:
            inner = inner.setdefault(part, {})
        inner[last] = value
    return body


def annotated(key: str, text: str) -> dict[str, Any]:
    """A plain pod with one annotation more."""
    return pod(metadata__annotations={key: text})


#: Any JSON, of moderate size.
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4)
    ),
    max_leaves=12,
)


@st.composite
def broken(draw: st.DrawFn, whole: Any = PLAIN) -> Any:
    """A document with up to three parts replaced by any JSON."""
    if not isinstance(whole, dict | list):
        return draw(JSON)
    body = copy.deepcopy(whole)
    for _ in range(draw(st.integers(1, 3))):
        at = body
        while True:
            keys = list(at) if isinstance(at, dict) else list(range(len(at)))
            if not keys:
                break
            key = draw(st.sampled_from(keys))
            if isinstance(at[key], dict | list) and at[key] and draw(st.booleans()):
                at = at[key]
                continue
            at[key] = draw(JSON)
            break
    return body
