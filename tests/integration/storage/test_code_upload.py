"""A training job's code is uploaded once, even if many training jobs have the same code."""

from __future__ import annotations

import asyncio
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fakes.git_server import commit, create_repository, git_server
from fakes.s3_server import read_objects
from integration.storage.code_jobs import HERE, code_job, no_config_map, no_token
from muster.api.config.sagemaker import AwsEndpoints
from muster.api.spec.job import Job
from muster.api.spec.source import ConfigMapSource, GitSource, Source
from muster.backends.sagemaker.requests import RequestPreparer
from muster.clients.aws.client import Aws
from muster.render.storage.source_files import SourceFiles, make_files
from muster.storage.source_folder import read_archive

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


def _with_source(source: Source | None) -> Job:
    job = code_job()
    return job.model_copy(update={"spec": job.spec.model_copy(update={"source": source})})


@pytest.fixture
def aws(s3: S3Client, s3_url: str) -> Aws:  # noqa: ARG001 - it sets the environment
    return Aws(AwsEndpoints(s3=s3_url, sts=s3_url))


async def test_attempts_share_their_code(aws: Aws, s3: S3Client) -> None:
    prepared = RequestPreparer(aws, no_config_map, no_token)
    bodies = [await prepared.prepare(code_job(), attempt, HERE) for attempt in (1, 2)]
    await aws.close()
    (key,) = read_objects(s3, "data")
    assert key.startswith("source/")
    assert key.endswith("/sourcedir.tar.gz")
    for body in bodies:
        value = body["HyperParameters"]
        assert isinstance(value, dict)
        assert json.loads(value["sagemaker_submit_directory"]) == f"s3://data/{key}"
    assert len({str(body["TrainingJobName"]) for body in bodies}) == 2


async def test_the_same_code_is_uploaded_once_from_wherever_it_comes(aws: Aws, s3: S3Client, tmp_path: Path) -> None:
    code = {"train.py": "print(1)\n"}
    name = commit(create_repository(tmp_path / "code.git"), code)

    async def read(_: str, __: str) -> SourceFiles:
        return make_files(code)

    prepared = RequestPreparer(aws, read, no_token)
    with git_server(tmp_path) as server:
        repository = GitSource(url=f"{server.url}/code.git", commit=name)
        for source in (code_job().spec.source, Source(config_map=ConfigMapSource(name="code")), Source(git=repository)):
            await prepared.prepare(_with_source(source), 1, HERE)
    await aws.close()
    ((key, packed),) = read_objects(s3, "data").items()
    files = read_archive(io.BytesIO(packed), key)
    assert files["train.py"].content == b"print(1)\n"
    # with muster's only addition, the rank reports
    assert all(path.startswith("muster_entry") for path in files.keys() - code.keys())


async def test_a_replaced_archive_is_not_run(aws: Aws, s3: S3Client) -> None:
    prepared = RequestPreparer(aws, no_config_map, no_token)
    await prepared.prepare(code_job(), 1, HERE)
    ((key, packed),) = read_objects(s3, "data").items()
    s3.put_object(Bucket="data", Key=key, Body=b"other code", ChecksumAlgorithm="SHA256")
    await prepared.prepare(code_job(), 2, HERE)
    await prepared.prepare(code_job(), 3, HERE)
    await aws.close()
    assert read_objects(s3, "data") == {key: packed}


async def test_one_jobs_code_after_the_other_is_in_memory(aws: Aws, s3: S3Client) -> None:  # noqa: ARG001 - its bucket
    reading, most = 0, 0

    async def read(_: str, name: str) -> SourceFiles:
        nonlocal reading, most
        reading, most = reading + 1, max(most, reading + 1)
        await asyncio.sleep(0)
        reading -= 1
        return make_files({"train.py": f"print({name!r})"})

    prepared = RequestPreparer(aws, read, no_token)
    jobs = [_with_source(Source(config_map=ConfigMapSource(name=f"code-{number}"))) for number in range(4)]
    await asyncio.gather(*(prepared.prepare(one, 1, HERE) for one in jobs))
    await aws.close()
    assert most == 1


async def test_code_that_is_there_is_not_uploaded_again(aws: Aws, s3: S3Client) -> None:
    prepared = RequestPreparer(aws, no_config_map, no_token)
    await prepared.prepare(code_job(), 1, HERE)
    (key,) = read_objects(s3, "data")
    first = s3.head_object(Bucket="data", Key=key)["LastModified"]
    s3.put_object_tagging(Bucket="data", Key=key, Tagging={"TagSet": [{"Key": "left", "Value": "alone"}]})
    await prepared.prepare(code_job(), 2, HERE)
    await aws.close()
    assert s3.head_object(Bucket="data", Key=key)["LastModified"] == first
    assert s3.get_object_tagging(Bucket="data", Key=key)["TagSet"]


async def test_the_sdks_own_request_has_its_own_code(aws: Aws, s3: S3Client) -> None:
    body = await RequestPreparer(aws, no_config_map, no_token).prepare(code_job(rankReports="Off"), 1, HERE)
    await aws.close()
    assert list(read_objects(s3, "data")) == [f"{body['TrainingJobName']}/source/sourcedir.tar.gz"]


async def test_channels_bring_code_and_start_script_of_their_own(aws: Aws, s3: S3Client) -> None:
    body = await RequestPreparer(aws, no_config_map, no_token).prepare(code_job(start="Channels"), 1, HERE)
    await aws.close()
    folder = f"{body['TrainingJobName']}/input"
    drivers = [f"{folder}/sm_drivers/{name}" for name in ("muster_start.json", "muster_start.py", "sm_train.sh")]
    assert sorted(read_objects(s3, "data")) == [f"{folder}/code/sourcedir.tar.gz", *drivers]


async def test_code_of_a_job_without_output_lies_in_the_bucket_of_its_roles_account(aws: Aws, s3: S3Client) -> None:
    # moto's own account differs: muster uses the allowed bucket, not that of the credentials' account
    bucket = "sagemaker-us-east-1-111122223333"
    s3.create_bucket(Bucket=bucket)
    body = await RequestPreparer(aws, no_config_map, no_token).prepare(_job_without_output(), 1, HERE)
    await aws.close()
    assert body["OutputDataConfig"] == {"S3OutputPath": f"s3://{bucket}/"}
    (key,) = read_objects(s3, bucket)
    assert key.startswith("source/")


def _job_without_output() -> Job:
    job = code_job()
    return job.model_copy(update={"spec": job.spec.model_copy(update={"output": None})})
