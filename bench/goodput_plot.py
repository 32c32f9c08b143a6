"""Draws the result of bench/goodput.py, which it reads from its input, as an SVG for the docs.

python bench/goodput_plot.py < goodput.json > docs/goodput.svg
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from svg import make_page

WIDTH, HEIGHT = 760, 380
LEFT, RIGHT, TOP, BOTTOM = 64, 130, 64, 56


@dataclass(frozen=True)
class Line:
    """One job: its goodput (0 to 1) over the seconds, and when its rank was killed."""

    name: str
    style: str
    points: Sequence[tuple[float, float]]
    kills: Sequence[float]


@dataclass(frozen=True)
class Axes:
    """The ranges of both axes: seconds, and goodput from `low` to 1."""

    seconds: float
    low: float

    def get_x(self, seconds: float) -> float:
        """Return the horizontal position of a time."""
        return round(LEFT + seconds / self.seconds * (WIDTH - LEFT - RIGHT), 1)

    def get_y(self, ratio: float) -> float:
        """Return the vertical position of a goodput."""
        return round(TOP + (1 - ratio) / (1 - self.low) * (HEIGHT - TOP - BOTTOM), 1)


def draw_axes(axes: Axes) -> list[str]:
    """Draw the grid with its numbers."""
    drawn = []
    for percent in range(round(axes.low * 100), 101, 20):
        y = axes.get_y(percent / 100)
        drawn += [
            f'<line class="grid" x1="{LEFT}" y1="{y}" x2="{WIDTH - RIGHT}" y2="{y}"/>',
            f'<text x="{LEFT - 8}" y="{y + 5}" text-anchor="end">{percent} %</text>',
        ]
    bottom = HEIGHT - BOTTOM
    drawn += [
        f'<text x="{axes.get_x(second)}" y="{bottom + 20}" text-anchor="middle">{second}</text>'
        for second in range(0, int(axes.seconds) + 1, 60)
    ]
    middle = (LEFT + WIDTH - RIGHT) / 2
    drawn.append(f'<text x="{middle}" y="{bottom + 42}" text-anchor="middle">seconds since the first steps</text>')
    return drawn


def draw_line(line: Line, axes: Axes) -> list[str]:
    """Draw a job's goodput, with its last value beside it, and a triangle at the bottom for each kill."""
    points = " ".join(f"{axes.get_x(second)},{axes.get_y(ratio)}" for second, ratio in line.points)
    last = line.points[-1][1]
    y, bottom = axes.get_y(last), HEIGHT - BOTTOM
    return [
        f'<polyline class="{line.style}" points="{points}"/>',
        f'<text class="{line.style}" x="{WIDTH - RIGHT + 8}" y="{y + 5}">{line.name} {last * 100:.0f} %</text>',
        *(
            f'<path class="{line.style}" d="M{axes.get_x(at)} {bottom - 10} l5 9 h-10 z"><title>kill -9</title></path>'
            for at in line.kills
        ),
    ]


def draw(lines: Sequence[Line]) -> str:
    """Return the SVG."""
    lowest = min(ratio for line in lines for _, ratio in line.points)
    axes = Axes(max(second for line in lines for second, _ in line.points), int(lowest * 5) / 5)
    title = "Goodput of two jobs with kill -9 of a rank each minute (▲)"
    parts = [*draw_axes(axes), *(part for line in lines for part in draw_line(line, axes))]
    return make_page(title, WIDTH, HEIGHT, LEFT, parts)


def main() -> None:
    """Read the result, and print the picture."""
    result = json.load(sys.stdin)
    lines = [
        Line(
            scope,
            style,
            [(at, ratio) for at, ratio in result[scope]["samples"] if ratio is not None],
            result[scope]["kills"],
        )
        for scope, style in (("InPlace", "a"), ("Pods", "b"))
    ]
    print(draw(lines))


main()
