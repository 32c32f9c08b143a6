from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime

import pytest

from fakes.fake_credentials import use_fake_credentials
from fakes.sagemaker_service.server import serving
from fakes.sagemaker_service.service import Service
from muster.api.config.sagemaker import AwsEndpoints
from muster.clients.aws.client import Aws
from muster.objects.aws.access import AwsAccess

HERE = AwsAccess("us-west-2")


@pytest.fixture(autouse=True)
def _credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    use_fake_credentials(monkeypatch)


@pytest.fixture
def service() -> Service:
    return Service(lambda: datetime.now(UTC))


@pytest.fixture
def url(service: Service) -> Iterator[str]:
    with serving(service) as url:
        yield url


@pytest.fixture
async def aws(url: str) -> AsyncIterator[Aws]:
    aws = Aws(AwsEndpoints(sagemaker=url, sts=url))
    yield aws
    await aws.close()
