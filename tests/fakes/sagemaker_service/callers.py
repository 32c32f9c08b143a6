"""Identifies callers: the part of Amazon STS that lets a caller of one account use another."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from xml.sax.saxutils import escape

from fakes.sagemaker_service.refusal import Refusal

ACCOUNT = "111122223333"
OWN_ARN = f"arn:aws:sts::{ACCOUNT}:assumed-role/muster-operator/pod"

_SPACE = "https://sts.amazonaws.com/doc/2011-06-15/"


@dataclass(frozen=True)
class Caller:
    """`expires` None: never."""

    account: str
    arn: str
    expires: datetime | None = None


@dataclass
class Callers:
    """Callers by access key. An unknown key is the operator's own."""

    role_seconds: float = 3600.0
    """The lifetime of an assumed role's credentials. The duration in the request has no effect."""
    forbidden: set[str] = field(default_factory=set)
    """Roles that callers may not assume."""
    demanded: dict[str, frozenset[str]] = field(default_factory=dict)
    """By role: the external ids that its trust policy allows. Roles that aren't listed allow any."""
    known: dict[str, Caller] = field(default_factory=dict)
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    def find_caller(self, access_key: str) -> Caller:
        return self.known.get(access_key, Caller(ACCOUNT, OWN_ARN))

    def answer(self, form: Mapping[str, str], access_key: str, now: datetime) -> str:
        """Return XML. Raises Refusal."""
        caller = self.find_caller(access_key)
        if form.get("Action") == "GetCallerIdentity":
            return _render_response(
                "GetCallerIdentity", _render_fields(Account=caller.account, Arn=caller.arn, UserId="AROAEXAMPLE")
            )
        return self._assume_role(caller, form, now)

    def _assume_role(self, caller: Caller, form: Mapping[str, str], now: datetime) -> str:
        role, session = form.get("RoleArn", ""), form.get("RoleSessionName", "")
        is_let_in = role not in self.demanded or form.get("ExternalId") in self.demanded[role]
        match = re.fullmatch(r"arn:aws:iam::(\d{12}):role/(?:.*/)?([^/]+)", role)
        if match is None or role in self.forbidden or not is_let_in:
            who = f"User: {caller.arn} is not authorized to perform: sts:AssumeRole on resource: {role}"
            raise Refusal("AccessDenied", who, status=403)
        key = f"ASIA{next(self._numbers):016d}"
        arn = f"arn:aws:sts::{match[1]}:assumed-role/{match[2]}/{session}"
        expires = now + timedelta(seconds=self.role_seconds)
        self.known[key] = Caller(match[1], arn, expires)
        credentials = _render_fields(
            AccessKeyId=key,
            SecretAccessKey=f"secret-of-{key}",
            SessionToken=f"token-of-{key}",
            Expiration=expires.strftime("%Y-%m-%dT%H:%M:%SZ"),
        )
        user = _render_fields(Arn=arn, AssumedRoleId=f"AROAEXAMPLE:{session}")
        return _render_response(
            form["Action"],
            f"<Credentials>{credentials}</Credentials><AssumedRoleUser>{user}</AssumedRoleUser>",
        )


def render_refusal(refusal: Refusal) -> str:
    error = _render_fields(Type="Sender", Code=refusal.code, Message=refusal.message)
    return f'<ErrorResponse xmlns="{_SPACE}"><Error>{error}</Error></ErrorResponse>'


def _render_response(action: str, result: str) -> str:
    return f'<{action}Response xmlns="{_SPACE}"><{action}Result>{result}</{action}Result></{action}Response>'


def _render_fields(**values: str) -> str:
    return "".join(f"<{name}>{escape(value)}</{name}>" for name, value in values.items())
