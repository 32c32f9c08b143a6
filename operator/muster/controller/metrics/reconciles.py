"""The results of reconciles, which are label values of a metric."""

from enum import StrEnum

from muster.controller.jobs.job_controller import UnreadableStatus
from muster.controller.status.writer import JobNotFound, NotLeading, ResourceChanged
from muster.objects.kubernetes.errors import ApiError


class ReconcileOutcome(StrEnum):
    """How a reconcile ended."""

    DONE = "Done"
    CHANGED = "ResourceChanged"
    DELETED = "JobNotFound"
    NOT_LEADING = "NotLeading"
    UNREADABLE = "UnreadableStatus"
    REFUSED = "ApiError"
    BUG = "Bug"


def classify_error(error: Exception) -> ReconcileOutcome:
    """Return the result of a reconcile that raised this error."""
    match error:
        case ResourceChanged():
            return ReconcileOutcome.CHANGED
        case JobNotFound():
            return ReconcileOutcome.DELETED
        case NotLeading():
            return ReconcileOutcome.NOT_LEADING
        case UnreadableStatus():
            return ReconcileOutcome.UNREADABLE
        case ApiError():
            return ReconcileOutcome.REFUSED
        case _:
            return ReconcileOutcome.BUG
