"""Authorization over the network: a bearer token the API server accepts, and a right to the path.

Covers: TokenReview, then SubjectAccessReview for the path, as other exporters of a cluster do it;
what is remembered of both, and bounds. Does not cover: TLS (``certificates``), reaching the API
server (the port).

Rules:
1. Nothing is answered without a token that the API server has confirmed and a role that allows
   ``get`` on the path (``nonResourceURLs``). While the API server cannot be asked, the answer is
   503: never yes.
2. Verdicts are remembered for a short time and in a bounded number, tokens only as their hash: a
   scrape each few seconds costs two requests a minute.
3. At most ``ReviewTimes.reviews`` reviews are pending at once; later callers must try again.
   A flood of invented tokens costs the API server no more than that, and its sender the answer.
"""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol

from koordlet.http import authorisation, message, routes
from koordlet.kubeapi import kinds, objects, refusals
from koordlet.model.record import dataclass

#: A token of a service account has some 1 000 bytes.
_LONGEST = 8 << 10


class ReviewApi(Protocol):
    """Used part of the interface ``objects.Objects``."""

    async def create(self, kind: kinds.Kind, body: objects.Object) -> objects.Object:
        """A review is created, and answered in its status."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewTimes:
    """Lifetime of a verdict, and limits of pending and cached ones."""

    allowed_seconds: float = 60.0
    refused_seconds: float = 10.0
    remembered: int = 256
    reviews: int = 4


class TokenAuthorisation:
    """The seam ``authorisation.Authorise`` for a listener on the network."""

    def __init__(
        self,
        server: ReviewApi,
        manners: ReviewTimes | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._server = server
        self._manners = ReviewTimes() if manners is None else manners
        self._clock = clock
        #: (hash of the token, path) to the verdict and when it ends; the longest unused first.
        self._known: OrderedDict[tuple[bytes, str], tuple[authorisation.AccessVerdict, float]]
        self._known = OrderedDict()
        self._open = 0

    async def __call__(
        self, request: message.HttpRequest, _peer: message.Peer
    ) -> authorisation.AccessVerdict:
        """The verdict."""
        if request.method not in {"GET", "HEAD"}:
            return authorisation.AccessVerdict(routes.not_allowed(request, "GET, HEAD"))
        token = _token(request)
        if not token:
            return _stranger("no bearer token")
        key = (hashlib.blake2b(token.encode(), digest_size=16).digest(), request.path)
        known = self._remembered(key)
        if known is not None:
            return known
        if self._open >= self._manners.reviews:
            return _later("too many token reviews are pending")
        self._open += 1
        try:
            verdict = await self._judge(token, request.path)
        except refusals.ObjectsError as error:
            return _later(f"the API server could not review the token: {error}"[:300])
        finally:
            self._open -= 1
        self._remember(key, verdict)
        return verdict

    async def _judge(self, token: str, path: str) -> authorisation.AccessVerdict:
        review = await self._server.create(
            kinds.TOKEN_REVIEWS, {"metadata": {}, "spec": {"token": token}}
        )
        status = objects.part(review, "status")
        user = objects.part(status, "user")
        if status.get("authenticated") is not True or not user.get("username"):
            return _stranger("the API server rejected the token")
        asked = {
            "user": user["username"],
            "groups": list(user.get("groups") or ()),
            "uid": str(user.get("uid") or ""),
            "extra": dict(objects.part(user, "extra")),
            "nonResourceAttributes": {"path": path, "verb": "get"},
        }
        answer = await self._server.create(
            kinds.SUBJECT_ACCESS_REVIEWS, {"metadata": {}, "spec": asked}
        )
        if objects.part(answer, "status").get("allowed") is True:
            return authorisation.ALLOWED
        return authorisation.AccessVerdict(
            message.error(
                403,
                "forbidden",
                "no role allows this request",
                culprit=f"{user['username']}: get {path}"[:300],
                fix="bind a ClusterRole with this path among its nonResourceURLs",
            )
        )

    def _remembered(self, key: tuple[bytes, str]) -> authorisation.AccessVerdict | None:
        kept = self._known.get(key)
        if kept is None or kept[1] <= self._clock():
            return None
        self._known.move_to_end(key)
        return kept[0]

    def _remember(self, key: tuple[bytes, str], verdict: authorisation.AccessVerdict) -> None:
        manners = self._manners
        seconds = manners.allowed_seconds if verdict.allowed else manners.refused_seconds
        self._known[key] = (verdict, self._clock() + seconds)
        self._known.move_to_end(key)
        while len(self._known) > manners.remembered:
            self._known.popitem(last=False)


def _token(request: message.HttpRequest) -> str:
    scheme, _, rest = request.headers.get("authorization", "").partition(" ")
    token = rest.strip()
    return token if scheme.lower() == "bearer" and 0 < len(token) <= _LONGEST else ""


def _stranger(why: str) -> authorisation.AccessVerdict:
    return authorisation.AccessVerdict(
        message.error(
            401,
            "unauthorized",
            why,
            fix="send `Authorization: Bearer TOKEN` with a token of this cluster",
            headers={"www-authenticate": "Bearer"},
        )
    )


def _later(why: str) -> authorisation.AccessVerdict:
    return authorisation.AccessVerdict(
        message.error(503, "unavailable", why, fix="try again", headers={"retry-after": "5"})
    )
