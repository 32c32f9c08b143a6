"""The facts of a job on SageMaker, completed: which attempt it is at, and its instances as any job's nodes. Pure."""

from dataclasses import dataclass

from muster.api.spec.job import Job
from muster.api.status.status import Status
from muster.core.facts import JobFacts
from muster.core.training_job.course import Course, course_of
from muster.core.training_job.facts import TrainingFacts
from muster.core.training_job.nodes import as_job_facts
from muster.core.training_job.problems import with_problems


@dataclass(frozen=True)
class TrainingState:
    """What was observed, the course of the attempts, and the facts of the present one as those of any job."""

    observed: TrainingFacts
    course: Course
    nodes: JobFacts


def complete_training(job: Job, previous: Status, observed: TrainingFacts, now: float) -> TrainingState:
    """The steps in their order, at `now` (Unix seconds): the course, the nodes, and what stands in the job's way.

    `previous` is the last status `as_found`.
    """
    course = course_of(job, previous, observed, now)
    present = None if course.is_next else observed.training
    nodes = as_job_facts(job, observed, present, course.attempt)
    return TrainingState(observed, course, with_problems(nodes, observed, course))
