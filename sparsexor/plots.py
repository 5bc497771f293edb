"""One style for all figures: readable colours, labelled by name, with alt text, on a light card in dark mode too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
from cycler import cycler
from IPython.display import display
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sparsexor._arguments import check_count, check_real

PALETTE = {
    "blue": "#0072B2",
    "vermillion": "#D55E00",
    "green": "#009E73",
    "purple": "#CC79A7",
    "orange": "#E69F00",
    "sky": "#56B4E9",
    "black": "#000000",
}
"""Okabe and Ito's colours, which colour-blind readers can tell apart."""

STYLE: Any = {
    "axes.prop_cycle": cycler(color=list(PALETTE.values())),
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.alpha": 0.3,
    "font.size": 11,
    "legend.frameon": False,
    "lines.linewidth": 2,
    "lines.markersize": 6,
    "figure.dpi": 100,
    "savefig.facecolor": "white",
    "svg.hashsalt": "sparsexor",  # else SVG ids are random
}


LARGEST_FIGURE = 100.0
"""Inches to a side; at 100 dots an inch this is a picture of 10,000 by 10,000."""

MOST_COLUMNS = 100
"""Panels in a row."""


def figure(width: float = 6.4, height: float = 4.0, columns: int = 1) -> tuple[Figure, Any]:
    """A figure in the book's style, which holds from here on for the whole session.

    Parameters
    ----------
    width, height
        size in inches.
    columns
        number of panels side by side.

    Returns
    -------
    The figure, and its axes: one `Axes`, or an array of them if there are several columns.

    Raises
    ------
    TypeError, ValueError
        for sizes that are not positive numbers, or fewer than one column.
    """
    width, height = (
        check_real(name, size, 0.0, LARGEST_FIGURE, open_ends=True)
        for name, size in (("width", width), ("height", height))
    )
    columns = check_count("columns", columns, minimum=1, maximum=MOST_COLUMNS)
    plt.rcParams.update(STYLE)
    return plt.subplots(1, columns, figsize=(width, height), layout="constrained")


def frequency_with_interval(
    ax: Axes, x: Sequence[float], frequencies: Sequence[float], intervals: Sequence[tuple[float, float]], **style: Any
) -> None:
    """Draw frequencies as points with their confidence intervals (low, high) as bars.

    Raises
    ------
    ValueError
        for lists of different lengths, or a frequency outside its interval.
    """
    if not len(x) == len(frequencies) == len(intervals):
        raise ValueError(
            f"intervals: got {len(x)} x, {len(frequencies)} frequencies, {len(intervals)} intervals; expected as many of each"
        )
    for f, (low, high) in zip(frequencies, intervals, strict=True):
        if not low <= f <= high:
            raise ValueError(f"intervals: got [{low}, {high}] for the frequency {f}; expected low <= frequency <= high")
    below = [f - low for f, (low, _) in zip(frequencies, intervals, strict=True)]
    above = [high - f for f, (_, high) in zip(frequencies, intervals, strict=True)]
    bars: dict[str, Any] = {"fmt": "o", "capsize": 3} | style
    ax.errorbar(x, frequencies, yerr=[below, above], **bars)


def show(fig: Figure, alt: str) -> None:
    """Display a figure with a text that says what it shows, and close it.

    Raises
    ------
    TypeError
        if `fig` is not a matplotlib figure, or `alt` no string.
    ValueError
        if `alt` is empty: a figure without a description is invisible to some readers.
    """
    if not isinstance(fig, Figure):
        raise TypeError(f"fig: got {type(fig).__name__}; expected a matplotlib Figure, the first value of `figure`")
    if not isinstance(alt, str):
        raise TypeError(
            f"alt: got {alt!r} of type {type(alt).__name__}; expected a sentence that says what the figure shows"
        )
    if not alt.strip():
        raise ValueError(f"alt: got {alt!r}; expected a sentence that says what the figure shows")
    display(fig, metadata={"image/png": {"alt": alt}})
    plt.close(fig)
