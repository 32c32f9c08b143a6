"""Fake credentials, and connections that all tests share."""

from collections.abc import Iterator

import pytest

from fakes.fake_credentials import use_fake_credentials
from fakes.sagemaker_site.site import Wire


@pytest.fixture(scope="session")
def wire() -> Iterator[Wire]:
    with pytest.MonkeyPatch.context() as patch:
        use_fake_credentials(patch)
        yield Wire()
