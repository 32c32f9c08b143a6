"""The rates of requests that AWS allows an account, by operation. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class Quota:
    """The limits of an account in a region: requests `per_second`, and concurrent requests (`max_concurrent`).

    If `max_concurrent` is 1, the interval starts at the previous response, so that a delayed request can't arrive
    together with the next one.
    """

    per_second: float
    max_concurrent: int


QUOTAS: Mapping[str, Quota] = MappingProxyType(
    {
        "CreateTrainingJob": Quota(0.9, 3),
        "StopTrainingJob": Quota(0.9, 3),
        "ListTrainingJobs": Quota(2.0, 1),
        "DescribeTrainingJob": Quota(4.5, 4),
        "ListTags": Quota(1.8, 2),
        "DescribeLogStreams": Quota(22.5, 8),
        "FilterLogEvents": Quota(4.5, 4),
        "GetLogEvents": Quota(9.0, 8),
    }
)
"""The quotas of operations. Other operations are not limited.

SageMaker: the defaults in Service Quotas (service code `sagemaker`), none of them adjustable: "Rate of
CreateTrainingJob requests" 1/s (L-21A1652A), StopTrainingJob 1/s (L-B57580F5), ListTrainingJobs 2/s (L-DE587792),
DescribeTrainingJob 5/s (L-96E3A68C). ListTags has no published quota, so its rate is a cautious guess. CloudWatch Logs:
the lowest of any region in "Amazon CloudWatch Logs endpoints and quotas" (AWS General Reference): GetLogEvents 10/s,
FilterLogEvents 5/s, DescribeLogStreams 25/s. If requests are concurrent, a tenth of the quota is left for delayed ones.
"""
