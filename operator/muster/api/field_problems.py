"""Problems in a resource's fields, as messages for users."""

from dataclasses import dataclass


@dataclass(frozen=True)
class FieldProblem:
    """A problem in one field: its path, a message with the found and the allowed value, and the line if known."""

    path: str
    message: str
    line: int | None = None

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message

    def at(self, source: str) -> str:
        """Format the problem with its source: `job.yaml:12: spec.nodes: found 0; allowed are 1 to 10000`."""
        return f"{source}: {self}" if self.line is None else f"{source}:{self.line}: {self}"


class InvalidResource(Exception):
    """The resource is invalid, and the job can't run.

    `problems` are in the file's order; `left_out` counts the problems that are not listed. The job's conditions get
    `reason`.
    """

    def __init__(
        self, problems: tuple[FieldProblem, ...], source: str = "resource", left_out: int = 0, reason: str = "Invalid"
    ) -> None:
        lines = [problem.at(source) for problem in problems]
        lines += [f"{source}: and {left_out} more; correct these first"] if left_out else []
        super().__init__("\n".join(lines))
        self.problems = problems
        self.source = source
        self.left_out = left_out
        self.reason = reason
