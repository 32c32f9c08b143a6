"""Replaces the network of the SageMaker SDK's programs."""

import json
from functools import lru_cache
from typing import Any

import boto3
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders


class Wire:
    """Stores each CreateTrainingJob request, and answers all requests as AWS does on success.

    `roles` has the ARNs of IAM's roles by their names.
    """

    def __init__(self, account: str, roles: dict[str, str]) -> None:
        self.account = account
        self.roles = roles
        self.requests: list[dict[str, Any]] = []

    def send(self, model: Any, params: dict[str, Any], **_: object) -> tuple[AWSResponse, dict[str, Any]]:
        """Return a handler of botocore's event `before-call`: a returned value becomes the answer."""
        if model.name == "CreateTrainingJob":
            self.requests.append(json.loads(params["body"]))
        return AWSResponse("", 200, HTTPHeaders(), None), {
            "ResponseMetadata": {"HTTPStatusCode": 200},
            **self.answer(model.name, params),
        }

    def answer(self, action: str, params: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to the SDK's questions about identity, role, buckets and its training job."""
        match action:
            case "GetCallerIdentity":
                return {"Account": self.account}
            case "GetRole":
                return {"Role": {"Arn": self.roles[params["body"]["RoleName"]]}}
            case "ListBuckets":
                return {"Buckets": []}
            case "DescribeTrainingJob":
                return {"TrainingJobName": json.loads(params["body"])["TrainingJobName"]}
        return {}


def connect(region: str, wire: Wire) -> boto3.Session:
    """Return a session whose requests `wire` answers. It makes each client once, because that takes long."""
    session = boto3.Session(region_name=region)
    vars(session)["client"] = lru_cache(session.client)
    session._session.get_component("event_emitter").register("before-call", wire.send)
    return session


def refuse_connection(*_: object) -> None:
    """Replaces functions of `socket`."""
    raise OSError("the SDK is asked without a network")
