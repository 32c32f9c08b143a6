"""Translate the metrics of an elastic policy to a HorizontalPodAutoscaler of the job. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from muster.api.document import JSON
from muster.api.names import API_VERSION, KIND
from muster.importers.kubernetes.draft import Draft
from muster.importers.kubernetes.report import Location, Report

_Shape: TypeAlias = "Mapping[str, _Shape] | None"

_TARGET: _Shape = dict.fromkeys(("type", "value", "averageValue", "averageUtilization"))
_METRIC: _Shape = {"name": None, "selector": {"matchLabels": None, "matchExpressions": None}}
_RESOURCE: _Shape = {"name": None, "target": _TARGET}
_OBJECT: _Shape = dict.fromkeys(("apiVersion", "kind", "name"))
_METRIC_SPEC: _Shape = {
    "type": None,
    "resource": _RESOURCE,
    "containerResource": {"container": None, "name": None, "target": _TARGET},
    "pods": {"metric": _METRIC, "target": _TARGET},
    "external": {"metric": _METRIC, "target": _TARGET},
    "object": {"describedObject": _OBJECT, "metric": _METRIC, "target": _TARGET},
}
"""The fields of a metric of autoscaling/v2; None where muster passes on any value."""


def add_autoscaler(
    draft: Draft, metrics: list[JSON], limits: tuple[int, int], location: Location, report: Report
) -> None:
    """Add the autoscaler that scales the job between its limits."""
    for index, metric in enumerate(metrics):
        _check(metric, _METRIC_SPEC, location.child(index), report)
    if limits[0] == limits[1]:
        report.note(location, "without effect, because the minimum equals the maximum")
        return
    namespace: dict[str, JSON] = {"namespace": draft.metadata.namespace} if draft.metadata.namespace else {}
    draft.others.append(
        {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": draft.name, **namespace},
            "spec": {
                "scaleTargetRef": {"apiVersion": API_VERSION, "kind": KIND, "name": draft.name},
                "minReplicas": limits[0],
                "maxReplicas": limits[1],
                "metrics": metrics,
            },
        }
    )


def _check(value: JSON, shape: _Shape, location: Location, report: Report) -> None:
    if shape is None:
        return
    if not isinstance(value, dict):
        report.add(location, "fields of a metric of autoscaling/v2 are expected")
        return
    for name, item in value.items():
        if name not in shape:
            report.add(location.child(name), f"unknown field of a metric; allowed: {', '.join(shape)}")
        else:
            _check(item, shape[name], location.child(name), report)
