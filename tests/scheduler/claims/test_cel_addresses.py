"""Tests of ``koordlet.scheduler.claims.cel_addresses``: by whole expressions."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from koordlet.scheduler.claims import selector

_DEVICE = SimpleNamespace(
    attributes={"address": "10.1.2.3"}, capacity={}, allow_multiple_allocations=False
)
_ADDRESS = 'ip(device.attributes["nic"].address)'


@pytest.mark.parametrize(
    "expression",
    [
        f'cidr("10.0.0.0/8").containsIP({_ADDRESS}) && !cidr("10.2.0.0/16").containsIP({_ADDRESS})',
        'cidr("10.0.0.0/8").containsIP("10.9.9.9") && !cidr("10.0.0.0/8").containsIP("::1")',
        'cidr("10.0.0.0/8").containsCIDR("10.1.0.0/16")',
        '!cidr("10.1.0.0/16").containsCIDR(cidr("10.0.0.0/8"))',
        'cidr("10.1.2.3/8").ip() == ip("10.1.2.3") && cidr("10.1.2.3/8").prefixLength() == 8',
        'cidr("10.1.2.3/8").masked() == cidr("10.0.0.0/8")',
        'cidr("10.1.2.3/8") != cidr("10.0.0.0/8") && string(cidr("::1/64")) == "::1/64"',
        'ip("::1").family() == 6 && ip("127.0.0.1").family() == 4',
        'ip("127.0.0.1").isLoopback() && ip("0.0.0.0").isUnspecified()',
        'ip("169.254.1.1").isLinkLocalUnicast() && !ip("10.0.0.1").isLinkLocalUnicast()',
        'ip("224.0.0.1").isLinkLocalMulticast() && ip("ff02::1").isLinkLocalMulticast()',
        '!ip("224.0.1.1").isLinkLocalMulticast() && !ip("ff05::1").isLinkLocalMulticast()',
        'ip("10.0.0.1").isGlobalUnicast() && !ip("255.255.255.255").isGlobalUnicast()',
        '!ip("fe80::1").isGlobalUnicast() && !ip("224.0.0.1").isGlobalUnicast()',
        'isIP("::1") && !isIP("1.2.3") && !isIP("fe80::1%eth0") && !isIP("::ffff:1.2.3.4")',
        '!isIP("01.2.3.4") && !isIP("")',
        'isCIDR("1.2.3.4/32") && !isCIDR("1.2.3.4/33") && !isCIDR("1.2.3.4/255.0.0.0")',
        '!isCIDR("1.2.3.4/08") && !isCIDR("1.2.3.4")',
        'ip.isCanonical("2001:db8::1") && !ip.isCanonical("2001:DB8::1")',
        'string(ip("2001:DB8::1")) == "2001:db8::1"',
    ],
)
def test_expression_over_addresses_is_true(expression: str) -> None:
    """What Kubernetes' functions over addresses say."""
    assert selector.compile(expression).matches(_DEVICE, "nic") is True


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ('ip("x") == ip("::1")', "unable to parse IP"),
        ('ip("fe80::1%eth0").isLoopback()', "with zone value is not allowed"),
        ('ip("::ffff:1.2.3.4").isLoopback()', "is not allowed"),
        ('cidr("1.2.3.4/33").prefixLength() == 1', "prefix length out of range"),
        ('cidr("1.2.3.4").prefixLength() == 1', "no '/' and number of bits behind an address"),
    ],
)
def test_text_that_is_no_address_says_why(expression: str, message: str) -> None:
    """Such a selector ends the pod's attempt, as in a kube-scheduler."""
    with pytest.raises(selector.SelectorError) as caught:
        selector.compile(expression).matches(_DEVICE, "nic")
    assert str(caught.value).startswith("CEL runtime error: ")
    assert str(caught.value).endswith(message)
