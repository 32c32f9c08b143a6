from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from muster.clients.aws.observations import MAX_CLOCK_DIFFERENCE, OVERLAP, ListingRange, Observations
from muster.objects.aws.listing import Page
from muster.objects.aws.training_job import SecondaryStatusTransition, TrainingJobDescription, TrainingJobSummary

START = datetime(2026, 1, 1, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def summary(name: str, modified: float, secondary: str = "Training", status: str = "InProgress") -> TrainingJobSummary:
    return TrainingJobSummary(name, f"arn:{name}", status, secondary, START, at(modified))


def description(
    name: str, modified: float, secondary: str = "Training", status: str = "InProgress"
) -> TrainingJobDescription:
    return TrainingJobDescription(name, f"arn:{name}", status, secondary, START, at(modified))


def watching(*names: str) -> Observations:
    """Jobs that were described at the beginning."""
    observations = Observations()
    for name in names:
        observations.add(name, START)
        assert observations.pop_request() == name
        observations.record_description(description(name, 0, "Starting"))
    return observations


def test_who_begins_to_watch_has_the_job_described() -> None:
    observations = Observations()
    observations.add("a", START)
    assert observations.pop_request() == "a"
    assert observations.pop_request() is None
    assert observations.get("a").latest is None
    observations.record_description(description("a", 5))
    assert observations.get("a").latest == description("a", 5)


def test_a_change_is_reported_when_listed_and_described_after_that() -> None:
    observations = watching("a")
    assert observations.record_summary(summary("a", 7))
    assert observations.get("a").latest == summary("a", 7)
    assert observations.pop_request() == "a"
    assert observations.record_description(description("a", 7))
    assert observations.get("a").latest == description("a", 7)


def test_until_it_is_described_a_change_is_known_as_it_was_listed() -> None:
    observations = Observations()
    observations.add("a", START)
    assert observations.get("a").present is None
    starting = SecondaryStatusTransition("Starting", at(0), None, "starts")
    observations.record_description(replace(description("a", 0, "Starting"), image="i:1", transitions=(starting,)))
    observations.record_summary(summary("a", 7))
    present = observations.get("a").present
    assert present is not None
    assert (present.status, present.secondary_status, present.modified_at) == ("InProgress", "Training", at(7))
    assert present.transitions == (
        replace(starting, ended_at=at(7)),
        SecondaryStatusTransition("Training", at(7), None, ""),
    )
    assert present.image == "i:1"
    observations.record_summary(summary("a", 9, "Stopping", "Stopping"))
    stopping = observations.get("a").present
    assert stopping is not None
    assert stopping.status == "Stopping"


def test_an_end_is_known_once_it_is_described() -> None:
    observations = watching("a")
    observations.record_summary(summary("a", 7, "Failed", "Failed"))
    assert observations.get("a").present == description("a", 0, "Starting")
    failed = replace(description("a", 7, "Failed", "Failed"), failure_reason="so")
    observations.record_description(failed)
    assert observations.get("a").present == failed


def test_what_is_listed_again_is_no_news_and_not_described_again() -> None:
    observations = watching("a")
    observations.record_summary(summary("a", 7))
    observations.record_description(description("a", 7))
    observations.pop_request()
    assert not observations.record_summary(summary("a", 7))
    assert observations.pop_request() is None


def test_a_description_that_lags_behind_the_listing_is_asked_for_again() -> None:
    observations = watching("a")
    observations.record_summary(summary("a", 7))
    observations.pop_request()
    observations.record_description(description("a", 0, "Starting"))
    assert observations.get("a").latest == summary("a", 7)
    observations.record_summary(summary("a", 7))
    assert observations.pop_request() == "a"


def test_a_listing_that_lags_behind_takes_nothing_back() -> None:
    observations = watching("a")
    observations.record_description(description("a", 9, "Completed", "Completed"))
    assert not observations.record_summary(summary("a", 7))
    assert observations.get("a").latest == description("a", 9, "Completed", "Completed")


def test_others_jobs_are_passed_over() -> None:
    observations = watching("a")
    assert not observations.record_summary(summary("theirs", 7))
    assert not observations.record_description(description("theirs", 7))
    assert not observations.record_missing("theirs")
    assert observations.pop_request() is None
    assert observations.get("theirs").latest is None


def test_ends_are_described_before_beginnings_and_those_before_the_rest() -> None:
    observations = watching("changed", "ended")
    observations.record_summary(summary("changed", 5))
    observations.add("new", START)
    observations.record_summary(summary("ended", 5, "Failed", "Failed"))
    assert [observations.pop_request() for _ in range(4)] == ["ended", "new", "changed", None]


def test_among_equals_who_has_waited_longest_is_first_although_it_changed_again() -> None:
    observations = watching("a", "b")
    observations.record_summary(summary("a", 5))
    observations.record_summary(summary("b", 6))
    observations.record_summary(summary("a", 7, "Uploading"))
    assert [observations.pop_request() for _ in range(3)] == ["a", "b", None]


def test_a_missing_job_is_reported_once_until_it_exists() -> None:
    observations = Observations()
    observations.add("a", START)
    assert observations.record_missing("a")
    assert not observations.record_missing("a")
    assert observations.get("a").is_missing
    assert observations.record_summary(summary("a", 7))
    assert not observations.get("a").is_missing


def test_a_job_that_no_complete_listing_has_is_described() -> None:
    observations = watching("a", "b")
    observations.describe_unlisted(frozenset({"a", "theirs"}))
    assert [observations.pop_request() for _ in range(2)] == ["b", None]


def test_who_looks_away_hears_nothing() -> None:
    observations = watching("a")
    observations.record_summary(summary("a", 7))
    observations.drop("a")
    assert observations.pop_request() is None
    assert not observations.record_summary(summary("a", 8))
    assert observations.find_oldest_creation() is None


@given(
    st.lists(
        st.tuples(st.sampled_from(["list", "describe"]), st.sampled_from("ab"), st.integers(0, 20)),
        max_size=40,
    )
)
def test_the_latest_state_is_kept_in_every_order_of_responses(news: list[tuple[str, str, int]]) -> None:
    observations = watching("a", "b")
    newest = {"a": 0, "b": 0}
    for how, name, modified in news:
        # A job has one state at a time, which both kinds of responses contain.
        secondary = "Starting" if modified == 0 else f"State{modified}"
        if how == "list":
            observations.record_summary(summary(name, modified, secondary))
        else:
            observations.record_description(description(name, modified, secondary))
        newest[name] = max(newest[name], modified)
        for each, time in newest.items():
            latest = observations.get(each).latest
            assert latest is not None
            assert latest.modified_at == at(time)
    waiting = {observations.pop_request() for _ in range(3)}
    for name, time in newest.items():
        described = observations.get(name).description
        assert described is not None
        assert described.modified_at == at(time) or name in waiting


def page(seconds: float | None) -> Page:
    return Page((), "", None if seconds is None else at(seconds))


def test_the_first_listing_reaches_back_to_the_oldest_job() -> None:
    since = ListingRange().build_filter(START)
    assert (since.modified_after, since.created_after) == (None, START - MAX_CLOCK_DIFFERENCE)
    assert ListingRange().build_filter(None).created_after is None


def test_the_next_one_overlaps_the_one_before_by_the_services_own_clock() -> None:
    since = ListingRange().advance(page(100)).build_filter(START)
    assert since.modified_after == at(100) - OVERLAP


def test_without_the_services_time_everything_is_listed_again() -> None:
    assert ListingRange(at(50)).advance(page(None)) == ListingRange(at(50))
    assert ListingRange().advance(page(None)) == ListingRange()
