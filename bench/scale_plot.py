"""Draws the result of bench/scale.py, which it reads from its input, as an SVG for the docs.

    python bench/scale_plot.py start < scale.json > docs/scale-start.svg
    python bench/scale_plot.py cpu < scale.json > docs/scale-cpu.svg

`start` draws the seconds until all pods are Running, `cpu` the processor seconds of API server and operator. The left
panel is for one job, the right panel for many jobs at once. Both axes begin at 0.
"""

import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from svg import make_page

WIDTH, HEIGHT = 860, 400
PANEL_WIDTH, LEFT, GAP, TOP, BOTTOM = 300, 64, 100, 72, 56
STEPS = 4

Run = Mapping[str, Any]
Point = tuple[float, float]


@dataclass(frozen=True)
class Curve:
    """One line of a panel: its name, its class in the style, and its points."""

    name: str
    style: str
    points: Sequence[Point]


@dataclass(frozen=True)
class Figure:
    """What a picture shows: the title, and the curves of the runs of one panel."""

    title: str
    make_curves: Callable[[Sequence[Run]], list[Curve]]


def read_shape(run: Run) -> tuple[int, int]:
    """Return the number of jobs and the number of pods of each of them."""
    jobs, pods = run["shape"].split(" x ")
    return int(jobs), int(pods)


def find_points(runs: Sequence[Run], creator: str, value: Callable[[Run], float]) -> list[Point]:
    """Return the pods and the value of each run of this creator of pods."""
    return sorted((math.prod(read_shape(run)), value(run)) for run in runs if run["creator"] == creator)


def get_api_seconds(run: Run) -> float:
    """Return the processor seconds of the API server."""
    seconds: float = run["cpu_seconds"]["kube-apiserver"]
    return seconds


def make_start_curves(runs: Sequence[Run]) -> list[Curve]:
    """Return the seconds until all pods are Running."""
    creators = (("muster", "muster", "a"), ("Indexed Job", "indexed-job-500", "b"), ("bare client", "bare-client", "c"))
    return [
        Curve(name, style, find_points(runs, creator, lambda run: run["seconds"]["running"]))
        for name, creator, style in creators
    ]


def make_cpu_curves(runs: Sequence[Run]) -> list[Curve]:
    """Return the processor seconds."""
    return [
        Curve("API server", "a", find_points(runs, "muster", get_api_seconds)),
        Curve(
            "API server, Job",
            "b",
            find_points(runs, "indexed-job-500", get_api_seconds),
        ),
        Curve("operator", "c", find_points(runs, "muster", lambda run: run["cpu_seconds"]["operator"])),
    ]


FIGURES = {
    "start": Figure("Seconds until all pods are Running", make_start_curves),
    "cpu": Figure("Processor seconds for the start", make_cpu_curves),
}


def round_up(value: float) -> float:
    """Return a round number that is not smaller, for the end of an axis."""
    unit: float = 10.0 ** math.floor(math.log10(value))
    return next(factor * unit for factor in (1, 1.2, 1.6, 2, 3, 4, 6, 8, 10) if factor * unit >= value)


def draw_panel(subtitle: str, curves: Sequence[Curve], left: int) -> list[str]:
    """Draw one panel with its axes."""
    points = [point for curve in curves for point in curve.points]
    end_x, end_y = (round_up(max(point[axis] for point in points)) for axis in (0, 1))

    def get_x(value: float) -> float:
        return round(left + value / end_x * PANEL_WIDTH, 1)

    def get_y(value: float) -> float:
        return round(HEIGHT - BOTTOM - value / end_y * (HEIGHT - TOP - BOTTOM), 1)

    drawn = [f'<text x="{left}" y="{TOP - 14}">{subtitle}</text>']
    for step in range(STEPS + 1):
        x_value, y_value = end_x * step / STEPS, end_y * step / STEPS
        y = get_y(y_value)
        drawn += [
            f'<line class="grid" x1="{left}" y1="{y}" x2="{left + PANEL_WIDTH}" y2="{y}"/>',
            f'<text x="{left - 8}" y="{y + 5}" text-anchor="end">{y_value:g}</text>',
            f'<text x="{get_x(x_value)}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle">{x_value:g}</text>',
        ]
    drawn.append(f'<text x="{left + PANEL_WIDTH / 2}" y="{HEIGHT - 14}" text-anchor="middle">pods</text>')
    for curve in curves:
        line = " ".join(f"{get_x(x)},{get_y(y)}" for x, y in curve.points)
        drawn.append(f'<polyline class="{curve.style}" points="{line}"/>')
        drawn += [f'<circle class="{curve.style}" cx="{get_x(x)}" cy="{get_y(y)}" r="3"/>' for x, y in curve.points]
    return drawn


def draw_legend(curves: Sequence[Curve]) -> list[str]:
    """Draw the names of the curves beside the title."""
    starts = (430, 580, 740)
    return [
        f'<text class="{curve.style}" x="{start}" y="32">{curve.name}</text>'
        for curve, start in zip(curves, starts, strict=True)
    ]


def draw(figure: Figure, runs: Sequence[Run]) -> str:
    """Return the SVG."""
    one_job = figure.make_curves([run for run in runs if read_shape(run)[0] == 1])
    many_runs = [run for run in runs if read_shape(run)[0] > 1]
    many_jobs = figure.make_curves(many_runs)
    _, job_pods = read_shape(many_runs[0])
    parts = [
        *draw_legend(one_job),
        *draw_panel("one job", one_job, LEFT),
        *draw_panel(f"jobs of {job_pods} pods, all at once", many_jobs, LEFT + PANEL_WIDTH + GAP),
    ]
    return make_page(figure.title, WIDTH, HEIGHT, LEFT, parts)


def main() -> None:
    """Read the result, and print the picture."""
    print(draw(FIGURES[sys.argv[1]], json.load(sys.stdin)["runs"]))


main()
