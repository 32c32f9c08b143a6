from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime

import pytest

from muster.aws.client import Aws
from muster.aws.place import Endpoints, Place
from sagemaker_service.server import serving
from sagemaker_service.service import Service

HERE = Place("us-west-2")


@pytest.fixture(autouse=True)
def _credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Made-up ones, and nobody else's."""
    for name, value in {
        "AWS_ACCESS_KEY_ID": "AKIAEXAMPLE",
        "AWS_SECRET_ACCESS_KEY": "example-secret",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": "/dev/null",
        "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
    }.items():
        monkeypatch.setenv(name, value)
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_DEFAULT_REGION", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def service() -> Service:
    return Service(lambda: datetime.now(UTC))


@pytest.fixture
def url(service: Service) -> Iterator[str]:
    with serving(service) as url:
        yield url


@pytest.fixture
async def aws(url: str) -> AsyncIterator[Aws]:
    aws = Aws(Endpoints(sagemaker=url, sts=url))
    yield aws
    await aws.close()
