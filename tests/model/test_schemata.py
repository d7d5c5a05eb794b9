"""The text of ``schemata``: read, checked as the kernel checks, written, compared."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordlet.model import resctrl, schemata
from koordlet.model.cpuset import CPUSet
from tests.kit.kernel.resctrl_values import Resource, Status

INTEL = resctrl.Cache(name="L3", mask=0xFFF, domains=(0, 8))
AMD = resctrl.Cache(name="L3", mask=0xFFFF, min_bits=0, sparse=True, domains=(0, 8))
PERCENT = resctrl.Bandwidth(
    name="MB", unit=resctrl.Unit.PERCENT, gran=10, minimum=10, domains=(0, 8)
)
EIGHTHS = resctrl.Bandwidth(
    name="MB", unit=resctrl.Unit.EIGHTHS, domains=(0, 8), unlimited={0: 2048, 8: 2048}
)

values = st.dictionaries(
    st.sampled_from(["L2", "L3", "L3CODE", "MB", "SMBA"]),
    st.dictionaries(st.integers(0, 999), st.integers(0, (1 << 32) - 1), min_size=1, max_size=4),
    max_size=4,
)


@given(values)
def test_what_is_written_reads_the_same(wanted: dict[str, dict[int, int]]) -> None:
    """Formatting and parsing are inverse, and nothing differs from itself."""
    text = schemata.text(wanted)

    assert schemata.parse(text).values == wanted
    assert schemata.difference(wanted, schemata.parse(text)) == []
    assert schemata.same(text, text)


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    """Damage costs its line and raises nothing."""
    schemata.parse(text)


def test_the_kernels_padding_is_read() -> None:
    """Names and numbers come padded to the widest; an unknown line is kept as it came."""
    lines = schemata.parse("    MB:0= 50;1=100\nL3CODE:0=00f;16=fff\n  ODD 1\n")

    assert lines.values == {"MB": {0: 50, 1: 100}, "L3CODE": {0: 15, 16: 0xFFF}}
    assert lines.unknown == ("  ODD 1",)


def test_a_file_may_say_more_than_was_asked() -> None:
    """Only the named domains are compared; a domain that is not there is a difference."""
    assert schemata.same("L3:0=3f", "MB:0=100\nL3:0=03f;1=fff\n")
    assert not schemata.same("L3:0=3f;2=3f", "L3:0=03f;1=fff\n")
    assert not schemata.same("nonsense", "L3:0=03f\n")


def _checked(resource: Resource, value: int) -> str:
    status = Status()
    try:
        resource.number(f"{value:x}" if resource.cache else str(value), status)
    except OSError:
        return status.text.strip()
    return ""


@given(st.integers(0, 1 << 20), st.sampled_from([(INTEL, 1), (AMD, 0)]), st.integers(1, 3))
def test_masks_are_judged_as_the_kernel_judges(
    mask: int, which: tuple[resctrl.Cache, int], least: int
) -> None:
    """The product's rules and the stand-in's, which are recorded, agree in every word."""
    cache, _ = which
    bits = 0 if cache.sparse else least
    known = resctrl.Cache(name="L3", mask=cache.mask, min_bits=bits, sparse=cache.sparse)
    kernel = Resource("L3", 16, {0: CPUSet()}, cache.mask, min_bits=bits, sparse=cache.sparse)

    assert _checked(kernel, mask) == schemata.mask_problem(known, mask)


@given(st.integers(0, 5000), st.booleans())
def test_bandwidths_are_judged_as_the_kernel_judges(value: int, amd: bool) -> None:
    """The same for percent and for AMD's units."""
    bandwidth = EIGHTHS if amd else PERCENT
    kernel = Resource("MB", 16, {0: CPUSet()}, 2048 if amd else 100, minimum=bandwidth.minimum)

    assert _checked(kernel, value) == schemata.bandwidth_problem(bandwidth, value)


@pytest.mark.parametrize(
    ("resource", "domain", "value", "why"),
    [
        ("L3", 0, 0x3F, ""),
        ("L3", 1, 0x3F, "no domain 1"),
        ("L2", 0, 1, "Unknown or unsupported resource name 'L2'"),
        ("L3", 8, 0, "Mask out of range"),
        ("MB", 3, 50, "no domain 3"),
        ("MB", 8, 5, "MB value 5 out of range [10,100]"),
    ],
)
def test_a_value_needs_its_resource_and_domain(
    resource: str, domain: int, value: int, why: str
) -> None:
    """Cache ids have gaps; what is not there is named."""
    hardware = resctrl.Hardware(caches=(INTEL,), bandwidths=(PERCENT,))

    assert why == schemata.problem(hardware, resource, domain, value)


def test_every_problem_is_told() -> None:
    """One bad domain does not hide another, nor a good one."""
    hardware = resctrl.Hardware(caches=(INTEL,))
    wanted = {"L3": {0: 0, 1: 1, 8: 0xFF}}

    problems = list(schemata.problems(hardware, wanted))

    assert problems == [("L3", 0, "Mask out of range"), ("L3", 1, "no domain 1")]


def test_restricting_keeps_what_was_asked_for() -> None:
    """What we wrote, as the kernel reads it back, without what is none of our business."""
    current = schemata.parse("MB:0=60;1=100\nL3:0=03f;1=fff\n")

    assert schemata.restrict(current, {"MB": {0: 55}}) == {"MB": {0: 60}}


@given(st.integers(0, 1 << 16))
def test_contiguous_is_one_run_of_ones(mask: int) -> None:
    """Against the plainest definition."""
    assert ("0" not in f"{mask:b}".strip("0")) == schemata.contiguous(mask)
