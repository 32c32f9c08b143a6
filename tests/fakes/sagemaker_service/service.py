"""The fake SageMaker service: checks the caller, permissions and rates, injects faults, and answers."""

from __future__ import annotations

import json
import re
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from email.utils import format_datetime
from urllib.parse import parse_qsl

from fakes.sagemaker_service import callers as security
from fakes.sagemaker_service import jobs, policy, refusal
from fakes.sagemaker_service.callers import ACCOUNT, Caller, Callers
from fakes.sagemaker_service.faults import Fault, Faults
from fakes.sagemaker_service.jobs import Jobs
from fakes.sagemaker_service.policy import Policy
from fakes.sagemaker_service.refusal import Refusal

RATES: Mapping[str, int] = {
    "CreateTrainingJob": 1,
    "StopTrainingJob": 1,
    "ListTrainingJobs": 2,
    "DescribeTrainingJob": 5,
}
"""Requests a second of an account in a region (Service Quotas, service code `sagemaker`)."""

_SCOPE = re.compile(r"Credential=([^/]+)/\d{8}/([^/]+)/[^/]+/aws4_request")


@dataclass(frozen=True)
class Call:
    """A request, and AWS' code for its result ("": success; the name of a fault: what happened to the answer)."""

    at: datetime
    operation: str
    request: Mapping[str, object]
    account: str
    region: str
    access_key: str
    outcome: str


@dataclass(frozen=True)
class Reply:
    status: int
    body: str
    headers: Mapping[str, str]


@dataclass(frozen=True)
class NoReply:
    """The connection is closed, or (`is_silent`) no answer ever comes."""

    is_silent: bool


@dataclass
class Service:
    """All accounts and regions. `now` is the service's clock."""

    now: Callable[[], datetime]
    faults: Faults = field(default_factory=Faults)
    callers: Callers = field(default_factory=Callers)
    policy: Policy | None = None
    """The permissions of every caller; None: all."""
    rates: Mapping[str, int] = field(default_factory=lambda: dict(RATES))
    forgiving_seconds: int = 3
    """Rates are averages over this time: AWS' limiters allow bursts. `calls` has the requests of each second."""
    calls: list[Call] = field(default_factory=list)
    _jobs: dict[tuple[str, str], Jobs] = field(default_factory=dict)
    _recent: defaultdict[tuple[str, str, str], deque[datetime]] = field(default_factory=lambda: defaultdict(deque))

    def get_jobs(self, region: str = "us-west-2", account: str = ACCOUNT) -> Jobs:
        """Return the training jobs in this account and region."""
        return self._jobs.setdefault((account, region), Jobs(account, region))

    def list_calls(self, operation: str) -> list[Call]:
        return [call for call in self.calls if call.operation == operation]

    def handle(self, headers: Mapping[str, str], body: bytes) -> Reply | NoReply:
        """Handle one request."""
        scope = _SCOPE.search(headers.get("Authorization", ""))
        key, region = (scope[1], scope[2]) if scope else ("", "")
        target = headers.get("X-Amz-Target", "")
        if not target:
            return self._handle_sts(dict(parse_qsl(body.decode())), key, region)
        operation = target.removeprefix("SageMaker.")
        request = json.loads(body)
        outcome, reply = self._ask(operation, request, key, region)
        caller = self.callers.find_caller(key)
        self.calls.append(Call(self.now(), operation, request, caller.account, region, key, outcome))
        return reply

    def _ask(self, operation: str, request: Mapping[str, object], key: str, region: str) -> tuple[str, Reply | NoReply]:
        now = self.now()
        caller = self.callers.find_caller(key)
        fault = self.faults.take_next(operation)
        if fault is not None and not fault.is_done:
            return fault.name, self._make_fault_reply(fault)
        try:
            if operation not in jobs.OPERATIONS:
                raise Refusal("UnknownOperationException", "")  # noqa: TRY301
            self._check_caller(caller, now)
            self._check_rate((caller.account, region, operation), now)
            account_jobs = self.get_jobs(region, caller.account)
            self._check_rights(caller, operation, request, account_jobs)
            answer = jobs.answer(account_jobs, operation, request, now)
        except Refusal as refused:
            return refused.code, self._make_refusal_reply(refused)
        if fault is not None:
            return fault.name, self._make_fault_reply(fault)
        return "", self._reply(200, answer)

    def _handle_sts(self, form: Mapping[str, str], key: str, region: str) -> Reply | NoReply:
        operation = form.get("Action", "")
        fault = self.faults.take_next(operation)
        account = self.callers.find_caller(key).account
        code = fault.name if fault else ""
        try:
            reply: Reply | NoReply = self._make_xml_reply(200, self.callers.answer(form, key, self.now()))
        except Refusal as refused:
            code, reply = refused.code, self._make_xml_reply(refused.status, security.render_refusal(refused))
        if fault is not None:
            value = fault.refusal
            reply = (
                self._make_xml_reply(value.status, security.render_refusal(value))
                if value
                else self._make_fault_reply(fault)
            )
        self.calls.append(Call(self.now(), operation, form, account, region, key, code))
        return reply

    def _check_caller(self, caller: Caller, now: datetime) -> None:
        if caller.expires is not None and caller.expires <= now:
            raise refusal.make_expired_token_refusal()

    def _check_rate(self, key: tuple[str, str, str], now: datetime) -> None:
        rate = self.rates.get(key[2])
        if rate is None:
            return
        recent = self._recent[key]
        while recent and recent[0] <= now - timedelta(seconds=self.forgiving_seconds):
            recent.popleft()
        if len(recent) >= rate * self.forgiving_seconds:
            raise refusal.make_throttling_refusal()
        recent.append(now)

    def _check_rights(self, caller: Caller, operation: str, request: Mapping[str, object], account_jobs: Jobs) -> None:
        if self.policy is None:
            return
        arn = str(request.get("ResourceArn") or account_jobs.make_arn(str(request.get("TrainingJobName", ""))))
        job = account_jobs.by_name.get(arn.rpartition("/")[2])
        for right in policy.list_required_rights(operation, request, arn, job.tags if job else {}):
            if not self.policy.allows(right):
                raise refusal.make_access_denied_refusal(caller.arn, right.action, right.resource)

    def _make_fault_reply(self, fault: Fault) -> Reply | NoReply:
        value = fault.refusal
        return (
            NoReply(fault in {Fault.SILENCE, Fault.SILENCE_AFTER}) if value is None else self._make_refusal_reply(value)
        )

    def _make_refusal_reply(self, refused: Refusal) -> Reply:
        return self._reply(refused.status, {"__type": refused.code, "message": refused.message})

    def _reply(self, status: int, body: Mapping[str, object]) -> Reply:
        return Reply(
            status, json.dumps(body), {"Content-Type": "application/x-amz-json-1.1", **self._make_date_header()}
        )

    def _make_xml_reply(self, status: int, body: str) -> Reply:
        return Reply(status, body, {"Content-Type": "text/xml", **self._make_date_header()})

    def _make_date_header(self) -> dict[str, str]:
        return {"Date": format_datetime(self.now(), usegmt=True), "x-amzn-RequestId": f"request-{len(self.calls)}"}
