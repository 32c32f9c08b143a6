"""Print what an example's job is rendered to, as `muster render` does, without the agent's own size and hash."""

import sys

from muster.cli.job_file import read_job
from muster.cli.render import render_text

if __name__ == "__main__":
    sys.stdout.write(render_text(read_job(sys.argv[1]), b""))
