"""Templates of jobs: read a template, merge it into a job, and say which value came from where. Pure."""
