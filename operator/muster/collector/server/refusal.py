"""The reasons to refuse a request, and the responses. A response never repeats the request."""

from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus


class RefusalReason(StrEnum):
    """The reasons to refuse a request or a connection."""

    NOT_LEADER = "NotLeader"
    NO_TOKEN = "NoToken"  # noqa: S105 - a reason, not a password
    BAD_TOKEN = "BadToken"  # noqa: S105 - a reason, not a password
    EXPIRED = "Expired"
    WRONG_AUDIENCE = "WrongAudience"
    UNKNOWN_POD = "UnknownPod"
    OTHER_POD = "OtherPod"
    OTHER_JOB = "OtherJob"
    NOT_FOUND = "NotFound"
    TOO_LARGE = "TooLarge"
    LENGTH_REQUIRED = "LengthRequired"
    TOO_SLOW = "TooSlow"
    CROWDED_OUT = "CrowdedOut"
    NO_MEMORY = "NoMemory"
    COMPRESSED = "Compressed"
    MALFORMED = "Malformed"
    IMPLAUSIBLE = "Implausible"
    TOO_FAST = "TooFast"
    TOO_BUSY = "TooBusy"
    TOO_MANY_POLLS = "TooManyPolls"
    BAD_HTTP = "BadHttp"
    BAD_HANDSHAKE = "BadHandshake"
    SILENT = "Silent"
    TOO_MANY_CONNECTIONS = "TooManyConnections"


class RequestRefused(Exception):
    """The collector refuses a request and changes nothing.

    `retry_after` is in seconds; None if a retry can't help. `detail` is part of the response, and must not contain
    any part of the request.
    """

    def __init__(self, reason: RefusalReason, retry_after: float | None = None, detail: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.retry_after = retry_after
        self.detail = detail


@dataclass(frozen=True)
class RefusalResponse:
    """The response to a refused request."""

    status: HTTPStatus
    sentence: str


RESPONSES = {
    RefusalReason.NOT_LEADER: RefusalResponse(HTTPStatus.SERVICE_UNAVAILABLE, "This operator is not the leader;"),
    RefusalReason.NO_TOKEN: RefusalResponse(
        HTTPStatus.UNAUTHORIZED, "Send the pod's token: Authorization: Bearer <token>."
    ),
    RefusalReason.BAD_TOKEN: RefusalResponse(
        HTTPStatus.UNAUTHORIZED, "The token does not belong to a pod of this cluster."
    ),
    RefusalReason.EXPIRED: RefusalResponse(
        HTTPStatus.UNAUTHORIZED, "The token is not valid at this time; read it again."
    ),
    RefusalReason.WRONG_AUDIENCE: RefusalResponse(HTTPStatus.UNAUTHORIZED, "The token is for another service."),
    RefusalReason.UNKNOWN_POD: RefusalResponse(HTTPStatus.SERVICE_UNAVAILABLE, "The pod is not known yet; try again."),
    RefusalReason.OTHER_POD: RefusalResponse(
        HTTPStatus.FORBIDDEN, "The report and the token belong to different pods."
    ),
    RefusalReason.OTHER_JOB: RefusalResponse(
        HTTPStatus.FORBIDDEN, "The report and the token belong to different jobs."
    ),
    RefusalReason.NOT_FOUND: RefusalResponse(HTTPStatus.NOT_FOUND, "Use POST /v1/report or GET /v1/command."),
    RefusalReason.TOO_LARGE: RefusalResponse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "The body is too large."),
    RefusalReason.TOO_SLOW: RefusalResponse(HTTPStatus.REQUEST_TIMEOUT, "The body took too long."),
    RefusalReason.LENGTH_REQUIRED: RefusalResponse(
        HTTPStatus.LENGTH_REQUIRED, "Send the body's length, and no chunks."
    ),
    RefusalReason.CROWDED_OUT: RefusalResponse(
        HTTPStatus.TOO_MANY_REQUESTS, "The collector's memory is full, or a newer body replaced this one; try again."
    ),
    RefusalReason.NO_MEMORY: RefusalResponse(
        HTTPStatus.TOO_MANY_REQUESTS, "The reports of this namespace's jobs take too much memory; try again."
    ),
    RefusalReason.COMPRESSED: RefusalResponse(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "Send the body uncompressed."),
    RefusalReason.MALFORMED: RefusalResponse(HTTPStatus.BAD_REQUEST, "The request does not follow the protocol."),
    RefusalReason.IMPLAUSIBLE: RefusalResponse(
        HTTPStatus.BAD_REQUEST, "The report can't belong to a node of this job."
    ),
    RefusalReason.TOO_FAST: RefusalResponse(
        HTTPStatus.TOO_MANY_REQUESTS, "Too many requests; wait before the next one."
    ),
    RefusalReason.TOO_BUSY: RefusalResponse(
        HTTPStatus.TOO_MANY_REQUESTS, "These requests cost too much; wait before the next one."
    ),
    RefusalReason.TOO_MANY_POLLS: RefusalResponse(
        HTTPStatus.TOO_MANY_REQUESTS, "A newer request for commands replaced this one."
    ),
    RefusalReason.BAD_HTTP: RefusalResponse(HTTPStatus.BAD_REQUEST, "The collector does not accept this kind of HTTP."),
}
"""The responses by reason. For a reason without a response, the collector closes the connection."""
