"""What an address to listen on looks like."""

from __future__ import annotations

import pytest

from koordlet.config import address


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("127.0.0.1:0", True),
        ("[fe80::1%2]:65535", True),
        ("node-1.example:9316", True),
        ("127.0.0.1:65536", False),
        ("127.0.0.1", False),
        (":9316", False),
        # A colon within it asks for brackets.
        ("::1:9316", False),
        ("a:1\n", False),
        ("a:\u0661", False),
    ],
)
def test_an_address_is_a_host_and_a_port(text: str, *, expected: bool) -> None:
    """The port is one that can be: 16 bits, in ASCII digits."""
    assert address.is_one(text) is expected
