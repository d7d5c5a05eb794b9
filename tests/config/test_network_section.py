"""Bandwidth in the configuration: percent or bits per second, and what is neither."""

from __future__ import annotations

import json

import pydantic
import pytest

from koordlet.agent import policy_settings
from koordlet.config import memory_io_sections
from koordlet.model import strategies
from koordlet.policy.memory_io import network_qos
from tests.kit import agents


def test_parts_as_a_nodeslo_says_them() -> None:
    """A number is percent, a text is a quantity of bits per second."""
    section = {"egressLimit": 40, "egressRequest": "200M", "ingressLimit": "1Gi"}
    config = agents.effective(
        f"policies:\n  network_qos: {{beClass: {json.dumps(section)}}}\n"
    ).config

    settings = policy_settings.settings(config)[network_qos.STEM]

    assert isinstance(settings, network_qos.Settings)
    assert settings.classes[network_qos.BE] == strategies.NetworkQos(
        enable=True,
        egress_limit=strategies.Share(percent=40),
        egress_request=strategies.Share(bits=200_000_000),
        ingress_limit=strategies.Share(bits=1 << 30),
    )


@pytest.mark.parametrize("part", [-1, 101, "-5M", "much", "", [], 1.5])
def test_parts_that_are_none(part: object) -> None:
    """Refused, each by itself."""
    with pytest.raises(pydantic.ValidationError, match="egressLimit"):
        memory_io_sections.NetworkClass.model_validate({"egressLimit": part})


@pytest.mark.parametrize("link", ["", "a/b", "eth 0", "sixteen-letters-"])
def test_links_that_cannot_be(link: str) -> None:
    """The kernel has no such names."""
    with pytest.raises(pydantic.ValidationError, match="interfaces"):
        memory_io_sections.NetworkQos.model_validate({"interfaces": [link]})


@pytest.mark.parametrize("link", ["eth0", "enp1s0f0", "bond0.100", "wlan-s"])
def test_links_that_can_be(link: str) -> None:
    """Whatever the kernel takes."""
    section = memory_io_sections.NetworkQos.model_validate({"interfaces": [link]})

    assert (link,) == section.interfaces
