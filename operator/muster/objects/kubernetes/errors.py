"""Errors of requests to the API server."""

from dataclasses import dataclass
from http import HTTPStatus

NO_ANSWER = 0
"""The status of a request without a response: it may have been executed, or not."""


@dataclass(frozen=True)
class Cause:
    """A problem of an object (metav1.StatusCause)."""

    field: str
    message: str


class ApiError(Exception):
    """`status` is HTTP's or `NO_ANSWER`; `reason` and `message` are metav1.Status's; `retry_after` is in seconds."""

    def __init__(
        self,
        status: int,
        reason: str,
        message: str,
        *,
        causes: tuple[Cause, ...] = (),
        retry_after: float | None = None,
    ) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message
        self.causes = causes
        self.retry_after = retry_after

    @property
    def is_not_found(self) -> bool:
        """The object does not exist."""
        return self.status == HTTPStatus.NOT_FOUND

    @property
    def already_exists(self) -> bool:
        """An object of this name exists."""
        return self.status == HTTPStatus.CONFLICT and self.reason == "AlreadyExists"

    @property
    def is_conflict(self) -> bool:
        """The object has changed since it was read, or was replaced."""
        return self.status == HTTPStatus.CONFLICT and self.reason != "AlreadyExists"

    @property
    def is_gone(self) -> bool:
        """The resource version is too old for a watch."""
        return self.status == HTTPStatus.GONE

    @property
    def is_temporary(self) -> bool:
        """The same request may succeed later."""
        return (
            self.status in (NO_ANSWER, HTTPStatus.TOO_MANY_REQUESTS) or self.status >= HTTPStatus.INTERNAL_SERVER_ERROR
        )

    @property
    def is_refusal(self) -> bool:
        """The API server rejects the request: a retry would not help."""
        return self.status in (
            HTTPStatus.BAD_REQUEST,
            HTTPStatus.FORBIDDEN,
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            HTTPStatus.UNPROCESSABLE_ENTITY,
        )
