"""Hanging ranks in the status: the record `status.hang`, and a sentence about them."""

from collections import Counter
from collections.abc import Mapping

from muster.api.status.hang import HangRecord
from muster.api.timestamps import format_timestamp, format_timestamp_milliseconds
from muster.core.failure import rank_output
from muster.core.outcome import Outcome
from muster.core.status.failure_sentence import MAX_ACTIVITIES, MAX_RANGE_CHARS, add_preposition
from muster.core.status.rank_ranges import format_ranges
from muster.core.status.views import StatusInput
from muster.core.steps.blocked_collective import BlockedCollective
from muster.core.steps.hangs import HUNG, Hang
from muster_worker.contract.schema import MAX_ACTIVITY_CHARS


def build_hang_record(status_input: StatusInput) -> HangRecord | None:
    """Return the record of the ranks that hang. If the hang fails the attempt, keep the record until the next attempt.

    Return None if no rank hangs.
    """
    outcome, before = status_input.outcome, status_input.previous.hang
    is_failure = outcome.failure is not None and outcome.failure.reason == HUNG
    if outcome.is_restart_due or (outcome.is_decided and not is_failure):
        return None
    if is_failure and before is not None and before.is_failure and before.attempt == outcome.attempt:
        return before
    if outcome.hang is None:
        return None
    suspect = outcome.hang.ranks[0]
    return HangRecord(
        attempt=outcome.attempt,
        count=len(outcome.hang.ranks),
        ranks=format_ranges(rank.rank for rank in outcome.hang.ranks),
        rank=suspect.rank,
        step=suspect.step,
        since=format_timestamp_milliseconds(outcome.hang.since),
        is_failure=is_failure,
    )


def describe_hang(hang: Hang) -> str:
    """Describe hanging ranks: "ranks 0-2 have completed no step since ...: rank 2 is in recv, 2 ranks are in send"."""
    ranks = [rank.rank for rank in hang.ranks]
    subject = f"ranks {format_ranges(ranks, MAX_RANGE_CHARS)} have" if len(ranks) > 1 else f"rank {ranks[0]} has"
    sentence = f"{subject} completed no step since {format_timestamp(hang.since)}"
    activities = _describe_activities(hang)
    blocked = "" if hang.blocked is None else f"; {_describe_blocked(hang.blocked)}"
    return f"{sentence}: {activities}{blocked}" if activities else f"{sentence}{blocked}"


def order_hanging_ranks(outcome: Outcome) -> Mapping[int, int]:
    """Return the position of each hanging rank, most likely cause first; empty while muster stops the ranks."""
    if outcome.hang is None or outcome.is_decided:
        return {}
    return {rank.rank: position for position, rank in enumerate(outcome.hang.ranks)}


def _describe_activities(hang: Hang) -> str:
    activities = Counter(rank.activity for rank in hang.ranks if rank.activity)
    parts = sorted(activities.items(), key=lambda item: (item[1], item[0]))
    if len(hang.ranks) == 1:
        return "".join(f"it is {_describe_activity(activity)}" for activity, _ in parts)
    first = {rank.activity: rank.rank for rank in reversed(hang.ranks)}
    texts = [
        f"rank {first[activity]} is {_describe_activity(activity)}"
        if count == 1
        else f"{count} ranks are {_describe_activity(activity)}"
        for activity, count in parts[:MAX_ACTIVITIES]
    ]
    return ", ".join(texts)


def _describe_blocked(blocked: BlockedCollective) -> str:
    ranks, count = blocked.missing_ranks, len(blocked.waiting_ranks)
    subject = f"ranks {format_ranges(ranks, MAX_RANGE_CHARS)} have" if len(ranks) > 1 else f"rank {ranks[0]} has"
    others = f"{count} other ranks have" if count > 1 else f"rank {blocked.waiting_ranks[0]} has"
    return f"{subject} not entered {rank_output.sanitize_line(blocked.text)}, but {others}"


def _describe_activity(activity: str) -> str:
    return add_preposition(rank_output.sanitize_line(activity, limit=MAX_ACTIVITY_CHARS))
