import io
import zipfile

from muster.backends.agent_archive import agent_archive
from muster_worker.collector_client import backoff


def test_the_archive_is_the_same_every_time() -> None:
    first = agent_archive()
    agent_archive.cache_clear()
    assert agent_archive() == first


def test_the_archive_holds_the_agent_and_nothing_else() -> None:
    names = zipfile.ZipFile(io.BytesIO(agent_archive())).namelist()
    assert names[0] == "__main__.py"
    assert "muster_worker/contract.py" in names
    assert "muster_worker/site/sitecustomize.py" in names
    assert all(name.endswith(".py") for name in names)


def test_backoff_grows_and_obeys_the_collector() -> None:
    waits = [backoff(failures, 0.0, 0.5) for failures in range(12)]
    assert waits[0] == 0.1
    assert waits == sorted(waits)
    assert waits[-1] == 2.0
    assert backoff(0, 30.0, 0.0) == 30.0
    assert backoff(0, 1e9, 0.99) < 75.0
