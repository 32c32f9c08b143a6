"""Read the operator's configuration from the file of the option `--config`.

Most commands run without the option. So the functions import the modules for a configuration only if there is one.
"""
# ruff: noqa: PLC0415 - see above

from __future__ import annotations

from typing import TYPE_CHECKING

from muster.api.document import Document
from muster.api.field_problems import FieldProblem, InvalidResource
from muster.api.spec.job import Job
from muster.api.yaml.load import NotReadable, decode_documents
from muster.cli.errors import BadInput
from muster.cli.job_source import get_source_name, read_source

if TYPE_CHECKING:
    from muster.api.config.operator import OperatorConfig


def read_config_file(file: str | None) -> OperatorConfig | None:
    """Read the configuration; return None if `file` is None. Raises `BadInput` with the problem and its line."""
    if file is None:
        return None
    from muster.api.config.operator import OperatorConfig, read_config

    source = get_source_name(file)
    try:
        documents = decode_documents(read_source(file), source)
        if len(documents) > 1:
            raise BadInput(f"{source}: found {len(documents)} documents; one is expected")
        return read_config(documents[0]) if documents else OperatorConfig()
    except OSError as error:
        raise BadInput(f"{source}: {error.strerror}") from None
    except (NotReadable, InvalidResource) as error:
        raise BadInput(str(error)) from None


def apply_config(job: Job, config: OperatorConfig | None) -> Job:
    """Return the job with the fields of its pool. `config` is None if the operator's configuration is unknown.

    Raises `InvalidResource` for a pool's name if the configuration lacks the pool or is unknown.
    """
    pool = job.spec.node_pool
    if config is None and pool is not None and pool.name is not None:
        message = f"found {pool.name}; this pool is in the operator's configuration: set its file with --config FILE"
        raise InvalidResource((FieldProblem("spec.nodePool.name", message),))
    if config is None:
        return job
    from muster.api.config.pools import resolve_pool

    return resolve_pool(job, config.node_pools)


def check_with_config(job: Job, document: Document, config: OperatorConfig | None) -> None:
    """Raise `InvalidResource`, with lines, if the configuration lacks the pool or does not allow the job's fields."""
    if config is None:
        return
    from muster.api.config import tenancy
    from muster.api.config.pools import resolve_pool

    try:
        resolve_pool(job, config.node_pools)
    except InvalidResource as unknown:
        line = document.find_line(("spec", "nodePool", "name"))
        problems = tuple(FieldProblem(problem.path, problem.message, line) for problem in unknown.problems)
        raise InvalidResource(problems, document.source) from None
    tenancy.check_tenancy(job, config.tenancy, config.sagemaker.region or "")
