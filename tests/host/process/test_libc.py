"""Functions that Python does not wrap."""

from __future__ import annotations

import errno

import pytest

from koordlet.host.process import libc


def test_a_refusal_names_the_path() -> None:
    """With the kernel's errno."""
    with pytest.raises(OSError, match="/nowhere") as refused:
        libc.call("umount2", "/nowhere", 0, path="/nowhere")
    assert refused.value.errno in (errno.ENOENT, errno.EPERM, errno.EINVAL)
