"""The size of a report is checked before it is decoded, so that decoding takes limited memory."""

import json
import time
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.core.reports.report_size import MAX_DEPTH, ReportTooLarge, check_report_size
from muster_worker.agent.reports import encode_report
from muster_worker.contract import wire
from muster_worker.contract.collectives import MAX_COLLECTIVE_CHARS, MAX_GROUPS, GroupCollective
from muster_worker.contract.network import MAX_LINKS, Link, NetworkFigures
from muster_worker.contract.schema import (
    MAX_LAST_LINES,
    MAX_LINE_CHARS,
    MAX_METRICS,
    AgentProblem,
    LauncherEnd,
    MetricValue,
    RankReport,
    Report,
)
from muster_worker.contract.wire import compute_max_report_bytes
from support.searches import choose_example_count

COLLECTIVE = GroupCollective("g" * MAX_COLLECTIVE_CHARS, "o" * 64, 2**62, "p" * 64, 2**62)
LINES = st.tuples(*[st.text(max_size=MAX_LINE_CHARS)] * MAX_LAST_LINES)


def full_report(ranks: int, lines: tuple[str, ...], text: str = "w" * 256) -> Report:
    """Return a report with all fields."""
    return Report(
        "job",
        0,
        0,
        1,
        1,
        "Running",
        "fd00::1",
        29500,
        29501,
        "eth0",
        text,
        links=(Link("eth0", "fd00::1/64"),) * MAX_LINKS,
        figures=NetworkFigures(1.0, 1.0, 1.0, text),
        ranks=tuple(
            RankReport(
                rank,
                rank,
                "Exited",
                1,
                1,
                None,
                1.0,
                1.0,
                True,
                text,
                lines,
                1,
                1.0,
                text,
                text,
                1,
                "p" * 32,
                1.0,
                1.0,
                1,
                collectives=(COLLECTIVE,) * MAX_GROUPS,
            )
            for rank in range(ranks)
        ),
        metrics=(MetricValue("metric-of-a-script", 1.0, 0, 1.0),) * MAX_METRICS,
        launcher=LauncherEnd("torchrun", 1.0, 1, None, text, lines),
        problem=AgentProblem(text, "p" * 4096),
    )


@pytest.mark.parametrize("ranks", [1, 8, 128])
@pytest.mark.parametrize("line", ['"' * 512, "\\" * 512, "[{," * 170, '\\"[' * 170, "\U0001f600" * 512, "x" * 512])
def test_the_largest_valid_reports_pass(ranks: int, line: str) -> None:
    body = encode_report(full_report(ranks, (line,) * MAX_LAST_LINES))

    check_report_size(body, ranks)
    assert len(body) <= compute_max_report_bytes(ranks)


@settings(max_examples=choose_example_count(50))
@given(st.integers(1, 8), LINES)
def test_a_report_with_any_output_of_ranks_passes(ranks: int, lines: tuple[str, ...]) -> None:
    check_report_size(wire.encode(full_report(ranks, lines)), ranks)


@pytest.mark.parametrize(
    "body",
    [
        b'{"ranks":[' + b"[]," * 50_000 + b"[]]}",
        b'{"ranks":[' + b"{}," * 50_000 + b"{}]}",
        b'{"ranks":[' + b"0," * 50_000 + b"0]}",
        b"[" * 100_000 + b"]" * 100_000,
        b'{"a":' * 2_000 + b"1" + b"}" * 2_000,
        b"{" + b",".join(b'"%d":0' % number for number in range(30_000)) + b"}",
        b'["' + b"x" * 200_000 + b'"]',
        b'["\\\\",' + b"[]," * 50_000 + b"[]]",
        b"[" * (MAX_DEPTH * 2 + 1) + b"]" * (MAX_DEPTH * 2 + 1),
        b" " * 2_000_000,
    ],
)
def test_a_body_that_would_take_much_memory_is_refused_quickly(body: bytes) -> None:
    started_at = time.thread_time()
    with pytest.raises(ReportTooLarge):
        check_report_size(body, 8)

    assert time.thread_time() - started_at < 0.25


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=200,
)


def depth(value: object) -> int:
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if children is None else 1 + max(map(depth, children), default=0)


@given(JSON, st.sampled_from(["ascii", "utf-8"]))
def test_only_the_depth_of_a_small_document_is_limited(document: object, encoding: str) -> None:
    """Characters within strings do not count, and documents that are small and not too deep pass."""
    body = json.dumps(document, ensure_ascii=encoding == "ascii").encode("utf-8", "surrogatepass")
    if depth(document) <= MAX_DEPTH:
        check_report_size(body, 1)
    elif depth(document) > 2 * MAX_DEPTH:
        with pytest.raises(ReportTooLarge):
            check_report_size(body, 1)


@settings(max_examples=choose_example_count(30), deadline=None)
@given(st.lists(st.sampled_from([b'"', b"\\", b"[", b"]", b"{", b"}", b",", b":", b"0", b'""', b"[]"]), max_size=30))
def test_a_body_that_passes_needs_little_memory(parts: list[bytes]) -> None:
    """Repeat a pattern to a body of 100 kB: if it passes, parsing takes at most 2 MiB."""
    pattern = b"".join(parts) or b"[]"
    body = (b"[" + pattern * (100_000 // len(pattern)))[:100_000]
    try:
        check_report_size(body, 1)
    except ReportTooLarge:
        return
    tracemalloc.start()
    try:
        json.loads(body)
    except (ValueError, RecursionError):
        pass
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 2 * 2**20
