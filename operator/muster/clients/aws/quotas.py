"""The rates at which muster sends requests to AWS, by operation: at most the quotas of an account. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class Quota:
    """muster's limits for an account in a region: requests `per_second`, and concurrent requests (`max_concurrent`).

    Requests are at least 1 / `per_second` apart. If `max_concurrent` is 1, this interval starts at the previous
    response instead of the previous request, so that a delayed request can't arrive together with the next one.
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
"""muster's limits, from AWS' quotas. Other operations are not limited.

SageMaker's quotas are the defaults in Service Quotas (service code `sagemaker`), none of them adjustable: "Rate of
CreateTrainingJob requests" 1/s (L-21A1652A), StopTrainingJob 1/s (L-B57580F5), ListTrainingJobs 2/s (L-DE587792),
DescribeTrainingJob 5/s (L-96E3A68C). ListTags has no published quota, so its rate is a cautious guess. CloudWatch Logs:
the lowest of any region in "Amazon CloudWatch Logs endpoints and quotas" (AWS General Reference): GetLogEvents 10/s,
FilterLogEvents 5/s, DescribeLogStreams 25/s. AWS has no quotas for concurrent requests: muster chose these limits. If
muster sends requests concurrently, it uses nine tenths of the quota, because a delayed request may arrive together with
the next one.
"""
