"""Ask the API server who sent a request, and what they may do. Answers are kept for seconds."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from muster.cli.web.served.review_cache import ReviewCache
from muster.clients.kubernetes.client import Client
from muster.collector.server.limits import Rate, RequestLimiter
from muster.objects.kubernetes.errors import ApiError
from muster.objects.kubernetes.kinds import SUBJECT_ACCESS_REVIEWS, TOKEN_REVIEWS
from muster.objects.kubernetes.reviews import (
    ResourceAttributes,
    UserInfo,
    build_access_review,
    build_token_review,
    read_access_review,
    read_token_review,
)

AUDIENCE = "muster-board"
"""The audience of tokens that are only for the board. Tokens for the API server are valid, too."""

KEEP_SECONDS = 10.0
"""An answer is used this long: so a right that is withdrawn ends a stream within this time."""

MAX_TOKENS = 4096
MAX_ACCESS_ANSWERS = 16_384

TOKEN_RATE = Rate(per_second=10.0, burst=50.0)
"""The rate of unknown tokens, of all clients together: a client that guesses tokens must not load the API server."""

ACCESS_RATE = Rate(per_second=20.0, burst=60.0)
"""The rate of questions about one user."""

MAX_USERS = 4096

MAX_TOKEN_CHARS = 16_000


class ReviewFailed(Exception):
    """The API server did not answer, or too many questions were asked. Nothing may be shown."""


@dataclass
class Reviewer:
    """Asks with `client`. `clock` returns monotonic seconds."""

    client: Client
    clock: Callable[[], float] = time.monotonic
    _users: ReviewCache[bytes, UserInfo | None] = field(init=False)
    _answers: ReviewCache[tuple[UserInfo, ResourceAttributes], bool] = field(init=False)
    _known: dict[bytes, None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._users = ReviewCache(KEEP_SECONDS, MAX_TOKENS, self.clock)
        self._answers = ReviewCache(KEEP_SECONDS, MAX_ACCESS_ANSWERS, self.clock)
        self._token_limiter = RequestLimiter(TOKEN_RATE, 1)
        self._access_limiter = RequestLimiter(ACCESS_RATE, MAX_USERS)

    async def authenticate(self, token: str) -> UserInfo | None:
        """Return the token's user; None if it is not valid. Raises `ReviewFailed`."""
        if not token or len(token) > MAX_TOKEN_CHARS or not token.isascii():
            return None
        digest = hashlib.sha256(token.encode()).digest()
        # A token that was valid does not wait for those that someone guesses.
        if digest not in self._users and digest not in self._known:
            self._limit(self._token_limiter, "")
        user = await self._users.get(digest, lambda: self._review_token(token))
        self._known.pop(digest, None)
        if user is not None:
            self._known[digest] = None
            if len(self._known) > MAX_TOKENS:
                del self._known[next(iter(self._known))]
        return user

    async def is_allowed(self, user: UserInfo, attributes: ResourceAttributes) -> bool:
        """Return whether the user may send this request to the API server. Raises `ReviewFailed`."""
        key = (user, attributes)
        if key not in self._answers:
            self._limit(self._access_limiter, user.username)
        return await self._answers.get(key, lambda: self._review_access(user, attributes))

    def _limit(self, limiter: RequestLimiter, name: str) -> None:
        if limiter.take_token(name, self.clock()) > 0.0:
            raise ReviewFailed("too many requests: try again in a second")

    async def _review_token(self, token: str) -> UserInfo | None:
        # First the narrow audience: such a token is of no use elsewhere, so it is the one that users should take.
        for audiences in ((AUDIENCE,), ()):
            try:
                review = await self.client.create(TOKEN_REVIEWS, None, build_token_review(token, audiences))
            except ApiError as error:
                raise ReviewFailed(f"the cluster can't check tokens now: {error.message}") from None
            user = read_token_review(review, audiences)
            if user is not None:
                return user
        return None

    async def _review_access(self, user: UserInfo, attributes: ResourceAttributes) -> bool:
        try:
            review = await self.client.create(SUBJECT_ACCESS_REVIEWS, None, build_access_review(user, attributes))
        except ApiError as error:
            raise ReviewFailed(f"the cluster can't check rights now: {error.message}") from None
        return read_access_review(review)
