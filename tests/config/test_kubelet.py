"""The sections ``kubelet`` and ``kube``: modes and places."""

from __future__ import annotations

import pytest

from koordlet.config import loader, schema
from koordlet.model import errors
from tests.config.refusing import Write


@pytest.mark.parametrize("section", ["kubelet", "kube"])
@pytest.mark.parametrize(
    ("text", "mode"), [("on", "on"), ("off", "off"), ("true", "on"), ("auto", "auto")]
)
def test_modes_as_yaml_tools_write_them(write: Write, section: str, text: str, mode: str) -> None:
    """``on`` and ``off`` are read whether they are quoted or not."""
    config = loader.load(write(f"{section}: {{mode: {text}}}\n"), {}, {}).config

    assert mode == getattr(config, section).mode


@pytest.mark.parametrize(
    "body",
    [
        "kubelet: {mode: maybe}",
        "kubelet: {address: nowhere}",
        "kubelet: {timeoutSeconds: 0}",
        "kubelet: {maxAgeSeconds: 99999}",
        "kube: {kubeconfig: relative/path}",
    ],
)
def test_what_is_no_place(write: Write, body: str) -> None:
    """It is refused by name."""
    with pytest.raises(errors.ConfigError) as caught:
        loader.load(write(body), {}, {})

    assert body.partition("{")[2].partition(":")[0] in str(caught.value)


def test_nothing_is_asked_by_itself() -> None:
    """The built-in modes leave it to what the node shows."""
    config = schema.defaults()

    assert (config.kubelet.mode, config.kube.mode) == ("auto", "auto")
    assert not config.kubelet.insecure_skip_verify
