"""Our own files are where the system, the user or the operator says."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from koordlet.state import paths

HOME = {"HOME": "/home/u"}


@pytest.mark.parametrize(
    ("env", "root", "state_dir", "places"),
    [
        ({}, True, None, ("/run/koordlet", "/var/lib/koordlet", "/var/log/koordlet")),
        ({}, True, "/s", ("/s/run", "/s/lib", "/s/log")),
        (HOME, False, "/s", ("/s/run", "/s/lib", "/s/log")),
        (
            HOME,
            False,
            None,
            (
                "/home/u/.local/state/koordlet/run",
                "/home/u/.local/state/koordlet",
                "/home/u/.local/state/koordlet/log",
            ),
        ),
        (
            {**HOME, "XDG_STATE_HOME": "/x", "XDG_RUNTIME_DIR": "/run/user/7"},
            False,
            None,
            ("/run/user/7/koordlet", "/x/koordlet", "/x/koordlet/log"),
        ),
    ],
)
def test_where_everything_is(
    env: Mapping[str, str],
    root: bool,
    state_dir: str | None,
    places: tuple[str, ...],
) -> None:
    """The system's places as root, the user's otherwise, one directory when given."""
    where = paths.choose(env, root=root, state_dir=state_dir)

    assert tuple(map(Path, places)) == (where.run, where.lib, where.log)


def test_each_file_has_its_place() -> None:
    """Lock and socket are volatile, journal and checkpoints last, the audit log is a log."""
    where = paths.choose({}, root=True, state_dir=None)

    assert [
        str(path)
        for path in (
            where.lock,
            where.socket,
            where.journal,
            where.checkpoints,
            where.handover,
            where.audit,
        )
    ] == [
        "/run/koordlet/lock",
        "/run/koordlet/koordlet.sock",
        "/var/lib/koordlet/journal",
        "/var/lib/koordlet/checkpoint",
        "/var/lib/koordlet/handover.json",
        "/var/log/koordlet/audit.jsonl",
    ]
