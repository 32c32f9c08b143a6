from muster_worker.agent.outage import TELL_SECONDS, Outage


def test_a_short_silence_is_no_problem() -> None:
    outage = Outage(0.0)

    assert outage.failed("refused", 30.0) is None
    assert outage.failed("refused", 30.0 + TELL_SECONDS - 0.1) is None
    assert outage.answered(35.0) is None
    assert outage.failed("refused", 60.0) is None
    assert outage.heard_at == 35.0


def test_a_long_one_is_reported_once_with_its_end() -> None:
    outage = Outage(0.0)
    outage.failed("refused", 30.0)

    assert outage.failed("timed out", 36.0) == (
        "nobody takes this node's reports: timed out; trying again, the ranks go on"
    )
    assert outage.failed("refused", 37.0) is None
    assert outage.answered(70.0) == "reports are taken again, after 40 s"
    assert outage.answered(71.0) is None
