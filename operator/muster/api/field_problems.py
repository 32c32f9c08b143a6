"""Problems of a resource, as messages for the user who wrote it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class FieldProblem:
    """One problem to correct: the field's path, the found and the allowed value, and the line in the file if known."""

    path: str
    message: str
    line: int | None = None

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message

    def at(self, source: str) -> str:
        """The problem after its place: `job.yaml:12: spec.nodes: found 0; allowed are 1 to 10000`."""
        return f"{source}: {self}" if self.line is None else f"{source}:{self.line}: {self}"


class InvalidResource(Exception):
    """A resource that is invalid and can't run.

    `problems` holds its problems in the file's order, `left_out` counts the problems that are not listed. `reason` is
    the reason of the conditions that report it.
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
