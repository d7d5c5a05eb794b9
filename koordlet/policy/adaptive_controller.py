"""The control loop of ``adaptive``: how many CPUs best-effort work may have. Pure arithmetic.

Covers: one step of the controller, and why it is stable.
Does not cover: what is felt (``host.strain``), files (``adaptive``).

The input is *pain*: how much longer latency-sensitive threads wait for a CPU than they would among
themselves, in units of what is tolerated. One limit comes out, between a floor and the machine.
Weights are always in force beside it, and where they are enough nothing is gained by a limit: it is
cut where that is seen to help, and not otherwise.

Two answers of different speed, and the less of both counts. What best-effort work is *allowed* is
learned slowly, from pain. What a *crowd* leaves holds only while the crowd is there, and teaches
nothing: a spike of half a second must not cost ten.

Rules, in this order:
1. **Crowded.** The crest of what latency-sensitive work uses halves every ``half_life`` seconds.
   Where it fills ``crowded`` of the machine (until it fills less than ``roomy``), best-effort work
   has at most what is unused but for a spare part, and the floor as soon as it hurts. After that it
   has at once what it was allowed before.
2. **It hurts.** Pain of a moment is noise below ``sudden``; the mean of two steps one after the
   other is none, nor is what its sense calls ``sure``. Each cuts what is allowed to ``cut`` of it:
   sudden pain at most once in ``settle`` seconds, any other once in ``patience`` (a cut must be
   felt before the next).
   Where it hurt, less a tenth, is the new *ceiling*. Pain in a crowd, and in the ``echo`` of it (a
   mean that still holds the crowd), is the crowd's own.
3. **It does not hurt.** Pain below a half, ``pause`` seconds after the last cut and the last new
   peak, raises what is allowed by ``growth`` of the machine each second, and by ``regain`` below a
   ceiling, where the ground is known, up to that ceiling. In between nothing moves. The peak halves
   every ``memory`` seconds.
4. The ceiling is forgotten when the peak is clearly less than when it hurt, or ``forget`` seconds
   after the last cut, each time twice as many.
5. **It was not us.** ``prove`` seconds after the first cut, the mean waiting since then is compared
   with that before it, whoever is to blame (best-effort work's part of the blame is less after any
   cut). Where it is nearly as large, work waits for itself, or for strangers: best-effort work has
   at once what it was allowed before. For a while, each time twice as long, pain as it was then is
   not listened to; up to ``excuse`` times as much only ends growth, and more is heard.

Why it is stable. The limit is bounded by construction. Under a constant load the crest is the load,
so rule 1 is either on or off for good, and what it leaves is constant. What is allowed is cut by
nothing but pain, and pain cuts only after growth has reached a limit at which it hurts; that limit,
less a tenth, is then the ceiling. So the ceilings of successive cuts fall by a tenth at least, and
after ``log(floor / machine) / log(0.9)`` cuts (66 for a floor of a thousandth) there is none left
to make: the limit is constant until rule 4 or rule 5, whose periods double up to ``longest``. Where
a cut takes time to be felt, ``settle`` and the band between a half and one keep the loop from
answering its own echo. Under a load that swings, the limit turns with each swing (the band between
``roomy`` and ``crowded``, and the fading from the one to the other, are what a swing must be larger
and slower than), and once more for each tenth of the machine that the load rises by: nothing grows
while use rises. For equal states, more use and more pain never give a higher limit, but for rule 5.
"""

from __future__ import annotations

from dataclasses import replace

from koordlet.model.record import dataclass

#: Longer ago than any clock runs.
NEVER = -1e12


@dataclass(frozen=True, slots=True, kw_only=True)
class Law:
    """The numbers of the loop. Parts are of the machine, times in seconds."""

    floor: float = 0.05
    crowded: float = 0.88
    roomy: float = 0.80
    spare: float = 0.02
    half_life: float = 0.5
    echo: float = 1.0
    memory: float = 10.0
    sudden: float = 6.0
    cut: float = 0.6
    settle: float = 0.2
    patience: float = 1.0
    pause: float = 2.0
    growth: float = 0.10
    regain: float = 0.25
    noise: float = 0.002
    lighter: float = 0.10
    forget: float = 60.0
    longest: float = 600.0
    prove: float = 3.0
    helped: float = 0.7
    excuse: float = 2.0
    deaf: float = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Feeling:
    """What is known at one moment, in CPUs."""

    at: float
    machine: float
    ls: float
    #: What best-effort work may have at most: its pool.
    most: float
    #: Pain of the last moment, and the mean since the last step.
    pain: float = 0.0
    mean: float = 0.0
    #: Pain that is no noise, however short: one step of it is enough.
    sure: float = 0.0
    #: The mean once more, whoever is to blame.
    waited: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What the loop remembers. CPUs, and monotonic seconds."""

    #: ``None``: no step was made yet.
    at: float | None = None
    #: What is in force: the less of what is allowed and what a crowd leaves.
    limit: float = 0.0
    allowed: float = 0.0
    #: What latency-sensitive work used at most, fading slowly and fast.
    peak: float = 0.0
    crest: float = 0.0
    crowded: bool = False
    #: It hurt in this crowd: the floor, until it is over.
    pressed: bool = False
    crowd_over: float = NEVER
    ceiling: float | None = None
    #: When use was last above the remembered peak.
    rose_at: float = NEVER
    #: Peak use when the ceiling was learned, and how long it is kept.
    learned_peak: float = 0.0
    kept_for: float = 0.0
    cut_at: float = NEVER
    #: The mean of the last step hurt.
    ached: bool = False
    #: The first cut of a row: its time (negative: none), what was waited and allowed before it and
    #: under which ceiling, the pain, and what was waited since (times seconds).
    trial_at: float = -1.0
    trial_waited: float = 0.0
    trial_allowed: float = 0.0
    trial_ceiling: float | None = None
    trial_pain: float = 0.0
    trial_sum: float = 0.0
    #: Until then this much pain is not best-effort work's.
    deaf_until: float = NEVER
    excused: float = 0.0
    deaf_for: float = 0.0


def step(felt: Feeling, state: State, law: Law) -> tuple[State, str]:
    """The next state, and why the limit is what it is."""
    if state.at is None:
        # A limit of before a restart goes on.
        first = state.limit or felt.most
        state = replace(state, at=felt.at, limit=first, allowed=first)
    state = _crowd(felt, _peak(felt, state, law), law)
    state = _forget(felt, state, law)
    state = _judge(felt, state, law)
    state = replace(state, allowed=min(max(state.allowed, law.floor), felt.most))
    pain, hurts = heard(felt, state, law)
    ached = hurts and state.ached
    state = replace(state, ached=hurts)
    if state.crowded:
        return _in_crowd(felt, state, law, hurts=hurts)
    if felt.at - state.crowd_over < law.echo:
        return _at(felt, state, state.allowed), "latency-sensitive work has left room again"
    if hurts and (ached or felt.sure > 1 or pain > law.sudden):
        return _hurt(felt, state, law, pain)
    ceiling = felt.most if state.ceiling is None else state.ceiling
    resting = felt.at - max(state.cut_at, state.rose_at) < law.pause
    if pain >= 0.5 or resting or state.allowed >= ceiling:
        return _at(felt, state, state.allowed), _why_still(state, felt, resting=resting)
    pace = law.growth if state.ceiling is None else law.regain
    more = pace * felt.machine * min(2.0, felt.at - _last(state, felt))
    return _at(felt, state, min(ceiling, state.allowed + more)), "nobody waits: it grows again"


def heard(felt: Feeling, state: State, law: Law) -> tuple[float, bool]:
    """The pain that counts, and whether it hurts."""
    pain = max(felt.mean, felt.sure, felt.pain if felt.pain > law.sudden else 0.0)
    if felt.at < state.deaf_until and pain <= law.excuse * state.excused:
        pain = 0.0 if pain <= state.excused else min(pain, 1.0)
    return pain, pain > 1


def _last(state: State, felt: Feeling) -> float:
    return felt.at if state.at is None else state.at


def _at(felt: Feeling, state: State, allowed: float) -> State:
    return replace(state, at=felt.at, limit=allowed, allowed=allowed)


def _why_still(state: State, felt: Feeling, *, resting: bool) -> str:
    if state.allowed >= felt.most:
        return "nobody waits"
    if state.ceiling is not None and state.allowed >= state.ceiling:
        return "it hurt above this"
    return "it hurt, or use rose, a moment ago" if resting else "it nearly hurts"


def crest(ls: float, at: float, state: State, law: Law) -> float:
    """What latency-sensitive work used at most, as rule 1 remembers it at a moment."""
    elapsed = max(0.0, at - (at if state.at is None else state.at))
    kept: float = 0.5 ** (elapsed / law.half_life)
    return max(ls, state.crest * kept)


def _peak(felt: Feeling, state: State, law: Law) -> State:
    """What rules 3 and 4 remember."""
    elapsed = max(0.0, felt.at - _last(state, felt))
    # A new peak is one that is clearly above the last: steady use touches its own all the time.
    rose = felt.ls > state.peak + law.noise * felt.machine
    peak = max(felt.ls, state.peak * 0.5 ** (elapsed / law.memory))
    return replace(state, peak=peak, rose_at=felt.at if rose else state.rose_at)


def _crowd(felt: Feeling, state: State, law: Law) -> State:
    """Rule 1: whether latency-sensitive work fills the machine."""
    top = crest(felt.ls, felt.at, state, law)
    crowded = top > (law.roomy if state.crowded else law.crowded) * felt.machine
    over = felt.at if state.crowded and not crowded else state.crowd_over
    pressed = crowded and state.crowded and state.pressed
    return replace(state, crest=top, crowded=crowded, pressed=pressed, crowd_over=over)


def _in_crowd(felt: Feeling, state: State, law: Law, *, hurts: bool) -> tuple[State, str]:
    """Rule 1: what the crowd leaves."""
    left = felt.machine - felt.ls - law.spare * felt.machine
    pressed = state.pressed or hurts
    limit = law.floor if pressed else min(state.allowed, max(law.floor, left))
    why = "latency-sensitive work fills the machine"
    return replace(state, at=felt.at, limit=limit, pressed=pressed), why


def _forget(felt: Feeling, state: State, law: Law) -> State:
    """Rule 4."""
    if state.ceiling is None:
        return state
    if state.peak < state.learned_peak - law.lighter * felt.machine:
        return replace(state, ceiling=None, kept_for=0.0)
    kept_for = max(law.forget, state.kept_for)
    if felt.at - state.cut_at > kept_for:
        return replace(state, ceiling=None, kept_for=min(law.longest, 2 * kept_for))
    return state


def _hurt(felt: Feeling, state: State, law: Law, pain: float) -> tuple[State, str]:
    """Rule 2."""
    settle = law.settle if pain > law.sudden else law.patience
    if felt.at - state.cut_at < settle or state.allowed <= law.floor:
        return _at(felt, state, state.allowed), "it hurts, and the last cut is not felt yet"
    hurt_at = 0.9 * state.allowed
    ceiling = hurt_at if state.ceiling is None else min(state.ceiling, hurt_at)
    if state.trial_at < 0:
        state = replace(
            state,
            trial_at=felt.at,
            trial_waited=max(felt.waited, pain),
            trial_allowed=state.allowed,
            trial_ceiling=state.ceiling,
            trial_pain=pain,
            trial_sum=0.0,
        )
    made = replace(state, ceiling=max(law.floor, ceiling), learned_peak=state.peak, cut_at=felt.at)
    return _at(
        felt, made, max(law.floor, state.allowed * law.cut)
    ), "latency-sensitive work waits for a CPU"


def _judge(felt: Feeling, state: State, law: Law) -> State:
    """Rule 5: whether the cuts helped."""
    if state.trial_at < 0:
        return state
    if state.crowded:
        return replace(state, trial_at=-1.0)  # what a crowd waits proves nothing
    total = state.trial_sum + felt.waited * max(0.0, felt.at - _last(state, felt))
    tried = felt.at - state.trial_at
    if tried < law.prove:
        return replace(state, trial_sum=total)
    if total / tried <= max(1.0, law.helped * state.trial_waited):
        return replace(state, trial_at=-1.0, deaf_for=state.deaf_for / 2)
    deaf_for = min(law.longest, max(law.deaf, 2 * state.deaf_for))
    return replace(
        state,
        allowed=max(state.allowed, state.trial_allowed),
        trial_at=-1.0,
        deaf_for=deaf_for,
        excused=state.trial_pain,
        kept_for=0.0,
        deaf_until=felt.at + deaf_for,
        ceiling=state.trial_ceiling,
    )


def own_waiting(ls: float, machine: float) -> float:
    """How long work waits behind itself, for each second of CPU: nobody else's fault.

    Random arrivals on so many CPUs, by Sakasegawa's approximation of the M/M/c queue; half as much
    again, because real arrivals are more irregular. Endless where the machine is full.
    """
    load = ls / machine
    if load >= 1:
        return float("inf")
    waiting: float = load ** ((2 * (machine + 1)) ** 0.5 - 1) / (machine * (1 - load))
    return 1.5 * waiting
