"""While a git host or S3 is slow for one job, the other jobs' code is uploaded."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fakes.git_server import commit, create_repository, git_server
from fakes.s3_server import read_objects
from fakes.slow_host import SlowHost, slow_host
from integration.storage.code_jobs import HERE, code_job, no_config_map, no_token
from muster.api.config.sagemaker import AwsEndpoints
from muster.api.spec.job import Job
from muster.api.spec.source import GitSource, Source
from muster.backends.sagemaker import requests
from muster.backends.sagemaker.deadline_file import DeadlineFile
from muster.backends.sagemaker.requests import RequestPreparer
from muster.clients.aws.client import Aws
from muster.clients.aws.threads import MAX_THREADS
from muster.objects.aws.errors import Unavailable

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

PATIENCE_SECONDS = 60.0
_GIT = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-git-upload-pack-advertisement\r\nX: "


def _job(namespace: str, git: GitSource | None = None) -> Job:
    job = code_job(namespace, f"print({namespace!r})\n")
    if git is None:
        return job
    return job.model_copy(update={"spec": job.spec.model_copy(update={"source": Source(git=git)})})


def _at(netloc: str, name: str = "1" * 40) -> GitSource:
    # a server on this machine has no certificate, and a spec can't name a URL without one
    return GitSource(url=f"http://{netloc}/code.git", commit=name)


@contextmanager
def _good_git(folder: Path) -> Iterator[GitSource]:
    name = commit(create_repository(folder / "code.git"), {"train.py": "print(1)\n"})
    with git_server(folder) as server:
        yield _at(server.url.removeprefix("http://"), name)


async def _asked(host: SlowHost) -> None:
    assert await asyncio.to_thread(host.asked.wait, PATIENCE_SECONDS)


async def test_a_slow_host_delays_no_other_job(s3: S3Client, s3_url: str, tmp_path: Path) -> None:
    aws = Aws(AwsEndpoints(s3=s3_url, sts=s3_url))
    prepared = RequestPreparer(aws, no_config_map, no_token)
    with slow_host(_GIT, b"x") as slow, _good_git(tmp_path) as good:
        stuck = [asyncio.create_task(prepared.prepare(_job(f"slow-{n}", _at(slow.netloc)), 1, HERE)) for n in range(4)]
        await _asked(slow)
        async with asyncio.timeout(PATIENCE_SECONDS):
            await prepared.prepare(_job("git", good), 1, HERE)
            await prepared.prepare(_job("inline"), 1, HERE)
        assert len(read_objects(s3, "data")) == 2
        assert not any(task.done() for task in stuck)
        for task in stuck:
            task.cancel()
        await asyncio.gather(*stuck, return_exceptions=True)
        # a response that no test awaits is not read either
        assert await asyncio.to_thread(slow.left.wait, PATIENCE_SECONDS)
    await aws.close()


async def test_the_status_of_a_job_names_its_slow_host(
    s3: S3Client,  # noqa: ARG001 - it sets the environment
    s3_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(requests, "FETCH_SECONDS", 0.3)
    aws = Aws(AwsEndpoints(s3=s3_url, sts=s3_url))
    prepared = RequestPreparer(aws, no_config_map, no_token)
    with slow_host(_GIT, b"x") as slow:
        jobs = (_job(f"slow-{n}", _at(slow.netloc)) for n in range(3))
        ends = await asyncio.gather(*(prepared.prepare(job, 1, HERE) for job in jobs), return_exceptions=True)
        assert all(slow.netloc in str(end) for end in ends)
    await aws.close()


async def test_an_s3_that_drips_is_left_and_other_services_are_asked(
    s3: S3Client,  # noqa: ARG001 - it sets the environment
    s3_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(requests, "UPLOAD_SECONDS", 0.06)
    with slow_host(b"HTTP/1.1 200 OK\r\nX: ", b"x") as slow:
        aws = Aws(AwsEndpoints(s3=f"http://{slow.netloc}", sts=s3_url))
        prepared = RequestPreparer(aws, no_config_map, no_token)
        for number in range(MAX_THREADS + 1):
            with pytest.raises(Unavailable, match=r"HeadObject of s3://data/source/.* within 0.001 minutes"):
                await prepared.prepare(_job(f"team-{number}"), 1, HERE)
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert await aws.send_request(HERE, "sts", "GetCallerIdentity", {})
        await aws.close()


async def test_an_upload_ends_with_its_time(s3: S3Client, s3_url: str) -> None:
    aws = Aws(AwsEndpoints(s3=s3_url, sts=s3_url))
    content = b"x" * 2**20
    late, cut = DeadlineFile(io.BytesIO(content), -1.0), DeadlineFile(io.BytesIO(content), 60.0)
    cut.cut()
    for body in (late, cut):
        # which of them depends on where botocore reads it
        with pytest.raises((TimeoutError, Unavailable), match="upload took too long"):
            await aws.send_request(HERE, "s3", "PutObject", {"Bucket": "data", "Key": "code", "Body": body})
    body = DeadlineFile(io.BytesIO(content), 60.0)
    await aws.send_request(HERE, "s3", "PutObject", {"Bucket": "data", "Key": "code", "Body": body})
    assert read_objects(s3, "data") == {"code": content}
    await aws.close()
