"""The section ``counters``: off unless asked for, and windows that fit."""

from __future__ import annotations

import pytest

from koordlet.agent import policy_settings
from koordlet.config import loader, schema
from koordlet.host.counters import performance
from koordlet.model import errors
from tests.config.refusing import Write


def test_off_unless_asked_for(write: Write) -> None:
    """Without the section nothing is counted; with it, as it says."""
    assert policy_settings.counting(schema.defaults()) is None
    config = loader.load(write("counters: {cpi: {enabled: true, windowSeconds: 5}}"), {}, {}).config

    assert performance.PerformanceSettings(window=5.0) == policy_settings.counting(config)


def test_a_window_fits_into_its_interval(write: Write) -> None:
    """A longer one is refused, with both numbers."""
    with pytest.raises(errors.ConfigError, match=r"20 s does not fit into 10 s"):
        loader.load(write("counters: {cpi: {windowSeconds: 20, intervalSeconds: 10}}"), {}, {})
