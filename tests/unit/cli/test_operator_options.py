import json
import logging
import sys

import pytest

from muster.cli.errors import BadInput
from muster.cli.operator.log import start_log
from muster.cli.operator.operator import read_collector_url, read_log_format, read_pull_policy


@pytest.mark.parametrize(
    ("given", "read"),
    [
        (None, None),
        ("https://muster-collector.muster.svc:8443", "https://muster-collector.muster.svc:8443"),
        ("https://10.0.0.1:9/", "https://10.0.0.1:9"),
        ("https://[fd00::1]:8443", "https://[fd00::1]:8443"),
    ],
)
def test_a_collectors_url_is_a_host_and_a_port(given: str | None, read: str | None) -> None:
    assert read_collector_url(given) == read


@pytest.mark.parametrize(
    "given",
    ["", "muster-collector:8443", "http://a:1", "https://", "https://a:1/path", "https://a:port", "https://a?x=1"],
)
def test_any_other_url_is_refused_with_what_was_found(given: str) -> None:
    with pytest.raises(BadInput, match=r"--collector-url .*expected https://"):
        read_collector_url(given)


def test_a_log_format_is_one_of_two() -> None:
    assert [read_log_format(text) for text in ("plain", "json")] == ["plain", "json"]
    with pytest.raises(BadInput, match="--log-format xml: expected plain or json"):
        read_log_format("xml")


def test_a_pull_policy_is_one_of_kubernetes_or_left_to_it() -> None:
    policies = ["", "Always", "IfNotPresent", "Never"]
    assert [read_pull_policy(text) for text in policies] == policies
    with pytest.raises(BadInput, match="--pull-policy always: expected Always, IfNotPresent or Never"):
        read_pull_policy("always")


@pytest.fixture
def _own_log(monkeypatch: pytest.MonkeyPatch) -> None:
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])
    monkeypatch.setattr(root, "level", root.level)


@pytest.mark.usefixtures("_own_log")
def test_a_line_of_the_log_is_one_json_object(capsys: pytest.CaptureFixture[str]) -> None:
    sys.stderr.flush()
    start_log("json")
    logging.getLogger("muster.here").info("team/vit: %s", "Running: 4 of 4 ranks run\nsecond line")
    logging.getLogger("muster.here").debug("never seen")
    line = json.loads(capsys.readouterr().err)
    assert (line["level"], line["logger"]) == ("INFO", "muster.here")
    assert line["message"] == "team/vit: Running: 4 of 4 ranks run\nsecond line"


@pytest.mark.usefixtures("_own_log")
def test_nothing_that_is_quoted_passes_for_a_line_of_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    start_log("plain")
    logging.getLogger("muster.here").info(
        "team/vit: %s", "\x1b[31mred\r\n2026-11-21T04:05:19.000Z ERROR   forged\u2028too"
    )
    first, *more = capsys.readouterr().err.split("\n")
    assert first.endswith(" INFO    team/vit: \ufffd[31mred")
    assert more == ["    2026-11-21T04:05:19.000Z ERROR   forged", "    too", ""]


@pytest.mark.usefixtures("_own_log")
def test_kopf_is_heard_when_it_warns_without_its_stacks_and_not_of_what_is_meant_so(
    capsys: pytest.CaptureFixture[str],
) -> None:
    start_log("plain")
    kopf = logging.getLogger("kopf._core.reactor.running")
    kopf.info("Handler 'hear' succeeded.")
    kopf.warning("OS signals are ignored: running not in the main thread.")
    kopf.error("Watcher has failed", exc_info=LookupError("inside kopf"))
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert said.endswith("ERROR   Watcher has failed\n")
