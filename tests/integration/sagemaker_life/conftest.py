"""Fake credentials, and connections that all tests share."""

from collections.abc import Iterator

import pytest

from fakes.made_up_credentials import with_made_up_credentials
from fakes.sagemaker_site.site import Wire


@pytest.fixture(scope="session")
def wire() -> Iterator[Wire]:
    with pytest.MonkeyPatch.context() as patch:
        with_made_up_credentials(patch)
        yield Wire()
