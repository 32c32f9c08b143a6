"""docs/metrics.md, the alert rules and the dashboard name the metrics that the operator has."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from muster.collector.server.refusal import RefusalReason
from muster.controller.metrics.definitions import METRICS, MetricKind
from muster_dev.paths import ROOT
from support.rows import check_rows

PAGE = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
RULES_FILE = ROOT / "charts" / "muster" / "alerts" / "muster.yaml"
RULES: list[dict[str, Any]] = yaml.safe_load(RULES_FILE.read_text(encoding="utf-8"))["groups"][0]["rules"]
DASHBOARD = json.loads((ROOT / "charts" / "muster" / "dashboards" / "muster.json").read_text(encoding="utf-8"))
QUERIES = [target["expr"] for panel in DASHBOARD["panels"] for target in panel.get("targets", ())]
SUFFIXES = ("_bucket", "_sum", "_count")
SERIES = {metric.name for metric in METRICS if metric.kind is not MetricKind.HISTOGRAM} | {
    f"{metric.name}{suffix}" for metric in METRICS if metric.kind is MetricKind.HISTOGRAM for suffix in SUFFIXES
}
LABELS = {label for metric in METRICS for label in metric.labels} | {"le", "pod", "instance"}
RULE_TESTS = Path(__file__).with_name("alert_tests.yaml")


def test_the_table_is_that_of_the_code() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| `muster_")]
    labels = [", ".join(f"`{label}`" for label in metric.labels) or "-" for metric in METRICS]
    assert rows == [
        f"| `{metric.name}` | {metric.kind} | {names} | {metric.help_text} |"
        for metric, names in zip(METRICS, labels, strict=True)
    ]


def test_the_page_lists_the_reasons_of_refusals() -> None:
    section = PAGE.partition("\n## Reasons of the collector's refusals\n")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == list(RefusalReason)


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_names_follow_the_conventions(metric: Any) -> None:
    assert re.fullmatch(r"muster_[a-z_]+", metric.name)
    assert metric.name.endswith("_total") == (metric.kind is MetricKind.COUNTER)
    assert metric.name.endswith("_seconds") == (metric.kind is MetricKind.HISTOGRAM) == bool(metric.bounds)
    assert tuple(sorted(metric.bounds)) == metric.bounds
    assert not {"job", "rank", "node", "pod"} & set(metric.labels)


A_QUERY_NAMES_METRICS_AND_LABELS_ROWS: list[str] = [*QUERIES, *(rule["expr"] for rule in RULES)]


def test_a_query_names_metrics_and_labels_that_exist() -> None:
    def check_row(query: str) -> None:
        assert set(re.findall(r"\bmuster_\w+", query)) <= SERIES
        groups = (*re.findall(r"(?:by|on) \(([^)]*)\)", query), *re.findall(r"\{([^}]*)\}", query))
        named = {name for group in groups for name in re.findall(r"(?:^|,)\s*(\w+)", group)}
        assert named <= LABELS

    check_rows(A_QUERY_NAMES_METRICS_AND_LABELS_ROWS, check_row)


def test_each_alert_names_its_section_of_the_runbook() -> None:
    for rule in RULES:
        assert rule["annotations"]["runbook"] == f"docs/runbook.md#{rule['alert'].lower()}"
        assert rule["annotations"]["summary"]
        assert rule["labels"]["severity"] in {"critical", "warning", "info"}


def test_each_panel_has_its_place() -> None:
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    cells = [
        (place["x"] + column, place["y"] + line)
        for place in (panel["gridPos"] for panel in DASHBOARD["panels"])
        for column in range(place["w"])
        for line in range(place["h"])
    ]
    assert len(set(cells)) == len(cells)
    assert max(column for column, _ in cells) < 24


def promtool(*arguments: object) -> None:
    """Run promtool, Prometheus' own checker. Raises AssertionError with its output."""
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("promtool is missing: Debian has it in the package prometheus")
    done = subprocess.run([program, *map(str, arguments)], check=False, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


def test_prometheus_reads_the_rules_and_the_dashboard_s_queries(tmp_path: Path) -> None:
    promtool("check", "rules", "--lint-fatal", RULES_FILE)
    queries = [query.replace("$__rate_interval", "5m") for query in QUERIES]
    rules = [{"record": f"panel:{number}", "expr": query} for number, query in enumerate(queries)]
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}), encoding="utf-8")
    promtool("check", "rules", "--lint-fatal", file)


def test_each_alert_fires_when_it_should() -> None:
    document = yaml.safe_load(RULE_TESTS.read_text(encoding="utf-8"))
    fired = {each["alertname"] for test in document["tests"] for each in test["alert_rule_test"] if each["exp_alerts"]}
    assert fired == {rule["alert"] for rule in RULES}
    promtool("test", "rules", RULE_TESTS)
