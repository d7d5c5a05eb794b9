"""A source that is polled keeps its last good answer."""

from __future__ import annotations

from koordlet.workloads import source


async def test_the_same_answer_is_not_decoded_again() -> None:
    """The very same value comes out."""
    decoded = []

    async def fetch() -> bytes:
        return b"answer"

    def decode(data: bytes, _: list[str]) -> bytes:
        decoded.append(data)
        return data

    polled = source.Polled("s", fetch, decode, period=1.0, max_age=1.0)

    assert [await polled.poll(), await polled.poll()] == [True, False]
    assert decoded == [b"answer"]
