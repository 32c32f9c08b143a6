"""The errors of requests to the API server."""

from dataclasses import dataclass
from http import HTTPStatus

NO_RESPONSE = 0
"""The status of a request without a response. The API server may have executed it."""


@dataclass(frozen=True)
class Cause:
    """A problem of an object (metav1.StatusCause)."""

    field: str
    message: str


class ApiError(Exception):
    """A request failed. `status` is the HTTP status or `NO_RESPONSE`. The other fields are those of metav1.Status."""

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
        """Whether the object doesn't exist."""
        return self.status == HTTPStatus.NOT_FOUND

    @property
    def already_exists(self) -> bool:
        """Whether an object with this name exists."""
        return self.status == HTTPStatus.CONFLICT and self.reason == "AlreadyExists"

    @property
    def is_conflict(self) -> bool:
        """Whether the object has changed since it was read, or was replaced."""
        return self.status == HTTPStatus.CONFLICT and self.reason != "AlreadyExists"

    @property
    def is_gone(self) -> bool:
        """Whether the resource version is too old for a watch."""
        return self.status == HTTPStatus.GONE

    @property
    def is_temporary(self) -> bool:
        """Whether the same request may succeed later."""
        return (
            self.status in (NO_RESPONSE, HTTPStatus.TOO_MANY_REQUESTS)
            or self.status >= HTTPStatus.INTERNAL_SERVER_ERROR
        )

    @property
    def is_refusal(self) -> bool:
        """Whether the API server rejects the request, so that a retry would not help."""
        return self.status in (
            HTTPStatus.BAD_REQUEST,
            HTTPStatus.FORBIDDEN,
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            HTTPStatus.UNPROCESSABLE_ENTITY,
        )
