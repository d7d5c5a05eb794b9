"""A configuration that is refused, and what the fixtures that write one are."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from koordlet.config import loader
from koordlet.model import errors

Write = Callable[[str], str]
Raw = Callable[[bytes], str]


def refused(path: str) -> errors.ConfigError:
    """The error that loading the file ends in."""
    with pytest.raises(errors.ConfigError) as caught:
        loader.load(path, {}, {})
    return caught.value
