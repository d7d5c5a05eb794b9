"""The past of quotas: periods and marks, bounded, each once."""

from __future__ import annotations

from koordlet.scheduler.quotas.history import KEPT, QuotaAct, QuotaHistory, QuotaMark


def test_a_period_begins_when_a_quota_is_over_and_ends_when_it_is_within() -> None:
    """Looks between say nothing new; a quota that was never over has no past."""
    history = QuotaHistory()
    for over, now in ((True, 1), (True, 2), (False, 3), (False, 4), (True, 5)):
        history.note_use("q", over=over, now=now)
    history.note_use("calm", over=False, now=1)
    past = history.get("q")
    assert past is not None
    assert list(past.over) == [(1, 3), (5, None)]
    assert history.get("calm") is None


def test_a_pod_that_is_tried_again_and_again_is_one_mark() -> None:
    """The first refusal stays; a call back of the same pod is another mark."""
    history = QuotaHistory()
    for now, act in ((1, QuotaAct.REFUSED), (2, QuotaAct.REFUSED), (3, QuotaAct.CALLED_BACK)):
        history.note_pod("q", "d/p", act, now)
    past = history.get("q")
    assert past is not None
    assert list(past.marks) == [
        QuotaMark(1, QuotaAct.REFUSED, "d/p"),
        QuotaMark(3, QuotaAct.CALLED_BACK, "d/p"),
    ]


def test_the_newest_are_kept_and_quotas_that_are_no_more_are_forgotten() -> None:
    """Whatever happens, memory is that of so many periods and marks for each quota."""
    history = QuotaHistory()
    for now in range(4 * KEPT):
        history.note_use("q", over=now % 2 == 0, now=now)
        history.note_pod("q", f"d/p{now}", QuotaAct.REFUSED, now)
    past = history.get("q")
    assert past is not None
    assert (len(past.over), len(past.marks)) == (KEPT, KEPT)
    assert past.marks[-1].pod == f"d/p{4 * KEPT - 1}"
    history.keep({"other"})
    assert history.get("q") is None
