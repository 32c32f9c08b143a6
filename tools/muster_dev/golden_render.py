"""Print what an example's job is rendered to, as `muster render` does, without the agent's own size and hash."""

import sys

from muster.api.spec.job import Job
from muster.cli.job_file import read_job
from muster.cli.render.render import render_text
from muster.cli.render.training_request import request_text

AWS_REGION = "us-west-2"
"""Where a job for SageMaker is rendered for, unless it says it itself."""


def rendered(job: Job) -> str:
    """The text of `muster render`."""
    if job.spec.backend == "SageMaker":
        return request_text(job, AWS_REGION, None, None)
    return render_text(job, b"")


if __name__ == "__main__":
    sys.stdout.write(rendered(read_job(sys.argv[1])))
