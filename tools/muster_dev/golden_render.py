"""Renders jobs as `muster render` does, but without the size and hash of the agent.

`golden_render.py JOB=FILE ...` prints a JSON object with the text of each FILE.
"""

import json
import sys

from muster.api.spec.job import Job
from muster.cli.job_file import read_job
from muster.cli.render.render import render_text
from muster.cli.render.training_request import format_request

AWS_REGION = "us-west-2"
"""The region for SageMaker jobs that don't set one."""


def render_job(job: Job) -> str:
    """Return the output of `muster render`."""
    if job.spec.backend == "SageMaker":
        return format_request(job, AWS_REGION, None, None)
    return render_text(job, b"")


if __name__ == "__main__":
    pairs = [argument.split("=") for argument in sys.argv[1:]]
    sys.stdout.write(json.dumps({file: render_job(read_job(job)) for job, file in pairs}))
