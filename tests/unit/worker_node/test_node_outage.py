from muster_worker.agent.outage import LOG_AFTER_SECONDS, Outage


def test_a_short_silence_is_no_problem() -> None:
    outage = Outage(0.0)

    assert outage.record_failure("refused", 30.0) is None
    assert outage.record_failure("refused", 30.0 + LOG_AFTER_SECONDS - 0.1) is None
    assert outage.record_answer(35.0) is None
    assert outage.record_failure("refused", 60.0) is None
    assert outage.last_answer_at == 35.0


def test_a_long_one_is_reported_once_with_its_end() -> None:
    outage = Outage(0.0)
    outage.record_failure("refused", 30.0)

    assert outage.record_failure("timed out", 36.0) == (
        "reports don't reach the collector: timed out; retrying, the ranks continue"
    )
    assert outage.record_failure("refused", 37.0) is None
    assert outage.record_answer(70.0) == "reports reach the collector again, after 40 s"
    assert outage.record_answer(71.0) is None
