"""Evaluates the permissions of a call against an IAM policy: the part of IAM that muster's policy uses."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Right:
    """`context`: condition keys with the call's values."""

    action: str
    resource: str
    context: Mapping[str, str] = field(default_factory=dict)


class Policy:
    """An identity-based policy. Raises ValueError for elements that this code doesn't implement."""

    def __init__(self, document: Mapping[str, object]) -> None:
        statements = document["Statement"]
        if not isinstance(statements, list) or document.get("Version") != "2012-10-17":
            raise ValueError(document)
        self._statements = statements
        for statement in statements:
            unknown = set(statement) - {"Sid", "Effect", "Action", "Resource", "Condition"}
            if unknown or statement["Effect"] not in {"Allow", "Deny"}:
                raise ValueError(statement)

    def allows(self, right: Right) -> bool:
        effects = {statement["Effect"] for statement in self._statements if _does_apply(statement, right)}
        return effects == {"Allow"}

    def list_actions(self) -> set[str]:
        """Return all actions in the policy."""
        return {action for statement in self._statements for action in _as_list(statement["Action"])}

    def remove_action(self, action: str) -> Policy:
        """Return the same policy without an action."""
        statements = [
            {**statement, "Action": [each for each in _as_list(statement["Action"]) if each != action]}
            for statement in self._statements
        ]
        return Policy({"Version": "2012-10-17", "Statement": statements})


def list_required_rights(
    operation: str, request: Mapping[str, object], arn: str, tags: Mapping[str, str]
) -> tuple[Right, ...]:
    """Return the permissions that SageMaker requires (Service Authorization Reference). `arn` and `tags` belong to
    the training job.
    """
    if operation == "ListTrainingJobs":
        return (Right("sagemaker:ListTrainingJobs", "*"),)
    if operation != "CreateTrainingJob":
        return (Right(f"sagemaker:{operation}", arn, {f"aws:ResourceTag/{key}": tags[key] for key in tags}),)
    wanted = request.get("Tags")
    asked = {str(tag["Key"]): str(tag["Value"]) for tag in wanted} if isinstance(wanted, list) else {}
    tagged = {f"aws:RequestTag/{key}": value for key, value in asked.items()}
    passed = {"iam:PassedToService": "sagemaker.amazonaws.com"}
    return (
        Right("sagemaker:CreateTrainingJob", arn, tagged),
        *((Right("sagemaker:AddTags", arn, tagged),) if asked else ()),
        Right("iam:PassRole", str(request.get("RoleArn")), passed),
    )


def _does_apply(statement: Mapping[str, object], right: Right) -> bool:
    return (
        any(_matches(pattern, right.action, re.IGNORECASE) for pattern in _as_list(statement["Action"]))
        and any(_matches(pattern, right.resource) for pattern in _as_list(statement["Resource"]))
        and _do_conditions_hold(statement.get("Condition", {}), right.context)
    )


def _do_conditions_hold(conditions: object, context: Mapping[str, str]) -> bool:
    if not isinstance(conditions, Mapping):
        raise ValueError(conditions)
    for operator, wanted in conditions.items():
        holds = _OPERATORS[operator]
        if not all(holds(context.get(key), _as_list(patterns)) for key, patterns in wanted.items()):
            return False
    return True


_OPERATORS: Mapping[str, Callable[[str | None, list[str]], bool]] = {
    "Null": lambda found, wanted: wanted == [str(found is None).lower()],
    "StringEquals": lambda found, wanted: found in wanted,
    "StringLike": lambda found, wanted: found is not None and any(_matches(pattern, found) for pattern in wanted),
}


def _matches(pattern: str, text: str, flags: re.RegexFlag = re.NOFLAG) -> bool:
    escaped = re.escape(pattern).replace(r"\*", ".*").replace(r"\?", ".")
    return re.fullmatch(escaped, text, flags | re.DOTALL) is not None


def _as_list(value: object) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list) else [str(value)]
