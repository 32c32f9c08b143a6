"""The results of reconciles, as metrics count them."""

from enum import StrEnum

from muster.controller.jobs.job_controller import UnreadableStatus
from muster.controller.status.writer import JobNotFound, NotLeading, ResourceChanged
from muster.objects.kubernetes.errors import ApiError


class ReconcileResult(StrEnum):
    """How a reconcile ended."""

    DONE = "Done"
    CHANGED = "ResourceChanged"
    DELETED = "JobNotFound"
    NOT_LEADING = "NotLeading"
    UNREADABLE = "UnreadableStatus"
    REFUSED = "ApiError"
    BUG = "Bug"


def classify(error: Exception) -> ReconcileResult:
    """Return the result of a reconcile that raised this error."""
    match error:
        case ResourceChanged():
            return ReconcileResult.CHANGED
        case JobNotFound():
            return ReconcileResult.DELETED
        case NotLeading():
            return ReconcileResult.NOT_LEADING
        case UnreadableStatus():
            return ReconcileResult.UNREADABLE
        case ApiError():
            return ReconcileResult.REFUSED
        case _:
            return ReconcileResult.BUG
