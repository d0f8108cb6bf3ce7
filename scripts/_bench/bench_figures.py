"""What a bench prints: figures beside their budgets (DESIGN §11), as a table and as JSON."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from rich.console import Console
from rich.table import Table

Repeat = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured value. `better` says on which side of `budget` it should be; no budget, no verdict."""

    section: str
    name: str
    value: float
    unit: str
    budget: float | None = None
    better: Literal["less", "more"] = "less"
    detail: str = ""

    @property
    def within(self) -> bool | None:
        """Whether the budget is kept; None without one."""
        if self.budget is None:
            return None
        return self.value <= self.budget if self.better == "less" else self.value >= self.budget


@dataclass(slots=True)
class Report:
    """The figures so far; each is shown as it comes on the error stream, the table at the end."""

    figures: list[Figure] = field(default_factory=list)
    _progress: Console = field(default_factory=lambda: Console(stderr=True))

    def add(self, *figures: Figure) -> None:
        """Keep figures, and say that there are some."""
        for figure in figures:
            self.figures.append(figure)
            self._progress.print(f"  {figure.section} · {figure.name}: {_number(figure.value)} {figure.unit}")

    def print(self) -> None:
        """The table."""
        table = Table("measure", "figure", "budget", "", "", title="rewind bench", title_justify="left")
        table.columns[1].justify = table.columns[2].justify = "right"
        section = ""
        for figure in self.figures:
            if figure.section != section:
                section = figure.section
                table.add_section()
                table.add_row(f"[bold]{section}[/bold]")
            sign = "≤" if figure.better == "less" else "≥"
            budget = "" if figure.budget is None else f"{sign} {_number(figure.budget)}"
            verdict = {None: "", True: "[green]within[/green]", False: "[red]beyond[/red]"}[figure.within]
            value = f"{_number(figure.value)} {figure.unit}"
            table.add_row(f"  {figure.name}", value, budget, verdict, figure.detail)
        Console(width=140).print(table)

    def write(self, path: Path) -> None:
        """The figures as a JSON list."""
        entries = [{**asdict(figure), "within": figure.within} for figure in self.figures]
        path.write_text(json.dumps(entries, ensure_ascii=False, indent=1) + "\n")


def alternate(repeats: int, **ways: Repeat) -> dict[str, float]:
    """The median of each way, run in turns, so that a noisy neighbour disturbs all of them alike."""
    seen: dict[str, list[float]] = {name: [] for name in ways}
    for index in range(repeats):
        for name in ways if index % 2 == 0 else reversed(ways):
            seen[name].append(ways[name]())
    return {name: statistics.median(values) for name, values in seen.items()}


def median(values: Sequence[float]) -> float:
    """The median of values that came in any order."""
    return statistics.median(values)


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
