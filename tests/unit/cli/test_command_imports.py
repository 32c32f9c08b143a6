"""Short commands import only what they need, because imports take most of their time (bench/cli.py measures it)."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from fakes.api_server import ApiServer, served

JOB = Path(__file__).parents[3] / "training" / "examples" / "digits" / "job.yaml"

PROGRAM = """
import sys
from muster.cli.main import main

try:
    main()
finally:
    print("\\n".join(sys.modules), file=sys.stderr)
"""

CLIENTS = {"aiohttp", "asyncio", "boto3", "botocore", "dulwich", "kopf", "kubernetes", "prometheus_client", "requests"}
PARTS = {"muster.backends", "muster.collector", "muster.controller", "muster.engine", "muster.storage"}
OF_A_JOB = {"muster.render", "muster.api.validation", "muster.api.spec.job"}
OF_A_STATUS = {"muster.api.status.status", "muster.core.facts", "muster.cli.board", "rich", "http.client"}
OF_SAGEMAKER = {"muster.render.sagemaker", "muster.cli.render.sagemaker_commands"}


@pytest.mark.parametrize(
    ("command", "unneeded"),
    [
        (["validate", "-f", str(JOB)], CLIENTS | PARTS | OF_A_STATUS | OF_SAGEMAKER | {"muster.cli.render.render"}),
        (["render", "-f", str(JOB)], CLIENTS | PARTS | OF_A_STATUS | OF_SAGEMAKER),
        (["list"], CLIENTS | PARTS | OF_A_JOB | {"muster.core.facts", "muster.clients.kubernetes.client"}),
        (["ranks", "digits"], CLIENTS | PARTS | OF_A_JOB | {"muster.core.facts", "muster.clients.kubernetes.client"}),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
async def test_a_command_imports_nothing_that_it_does_not_need(
    command: list[str], unneeded: set[str], tmp_path: Path
) -> None:
    job = {"metadata": {"name": "digits"}}
    async with served(ApiServer({**job, "items": [job]}), tmp_path):
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-c", PROGRAM, *command),
            env={**os.environ, "KUBECONFIG": str(tmp_path / "kubeconfig")},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        output, modules = await process.communicate()
    assert process.returncode == 0, modules.decode()
    assert b"digits" in output
    assert not unneeded & set(modules.decode().splitlines())
