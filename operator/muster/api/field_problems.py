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

    def format_with_source(self, source: str) -> str:
        """Format the problem with its source: `job.yaml:12: spec.nodes: found 0; allowed are 1 to 10000`."""
        return f"{source}: {self}" if self.line is None else f"{source}:{self.line}: {self}"


class InvalidResource(Exception):
    """The resource is invalid, and the job can't run.

    `problems` are in the file's order. `omitted_count` is the number of further problems. The job's conditions get
    `reason`.
    """

    def __init__(
        self,
        problems: tuple[FieldProblem, ...],
        source: str = "resource",
        omitted_count: int = 0,
        reason: str = "Invalid",
    ) -> None:
        lines = [problem.format_with_source(source) for problem in problems]
        lines += [f"{source}: and {omitted_count} more; correct these first"] if omitted_count else []
        super().__init__("\n".join(lines))
        self.problems = problems
        self.source = source
        self.omitted_count = omitted_count
        self.reason = reason
