"""On EKS: the identity that a pod's service account gives muster, by IRSA and by Pod Identity."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from fakes.http_site import http_site
from fakes.sagemaker_service.service import Service
from muster.clients.aws.client import Aws
from muster.objects.aws.access import AwsAccess
from muster.objects.aws.errors import NoCredentials, NotFound

HERE = AwsAccess("us-west-2")
ROLE = "arn:aws:iam::111122223333:role/muster-operator"


@dataclass(frozen=True)
class Token:
    """The service account's token file, which the kubelet writes and renews."""

    path: Path

    def write(self, text: str) -> None:
        self.path.write_text(text)


@pytest.fixture
def token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Token:
    """Return the only proof of the caller's identity."""
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    token = Token(tmp_path / "token")
    token.write("first")
    return token


async def describe(aws: Aws) -> None:
    with pytest.raises(NotFound):
        await aws.get_training_jobs(HERE).describe("a-1")


async def test_irsa_and_a_token_that_is_written_anew(
    aws: Aws, service: Service, url: str, token: Token, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ROLE_ARN", ROLE)
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(token.path))
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", url)
    # botocore gets new credentials when less than ten minutes remain.
    service.callers.role_seconds = 300.0
    await describe(aws)
    token.write("second")
    await describe(aws)
    assumed = [call.request for call in service.list_calls("AssumeRoleWithWebIdentity")]
    assert {one["RoleArn"] for one in assumed} == {ROLE}
    assert list(dict.fromkeys(one["WebIdentityToken"] for one in assumed)) == ["first", "second"]
    assert (await aws.get_identity(HERE)).arn.startswith("arn:aws:sts::111122223333:assumed-role/muster-operator/")


class _PodIdentity(BaseHTTPRequestHandler):
    """The EKS agent on a node."""

    def do_GET(self) -> None:
        if self.headers["Authorization"] != "first":
            self.send_error(401)
            return
        value = {"AccessKeyId": "ASIAPOD", "SecretAccessKey": "s", "Token": "t", "Expiration": "2999-01-01T00:00:00Z"}
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def pod_identity(token: Token, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with http_site(_PodIdentity) as url:
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{url}/v1/credentials")
        monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", str(token.path))
        yield


@pytest.mark.usefixtures("pod_identity")
async def test_pod_identity(aws: Aws, service: Service) -> None:
    await describe(aws)
    assert [call.access_key for call in service.list_calls("DescribeTrainingJob")] == ["ASIAPOD"]


@pytest.mark.usefixtures("token")
async def test_a_pod_without_either_gets_an_error(aws: Aws) -> None:
    with pytest.raises(NoCredentials, match="There are no AWS credentials for"):
        await aws.get_training_jobs(HERE).describe("a-1")
