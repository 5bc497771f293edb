"""One style for all figures: readable colours, labelled by name, with alt text, on a light card in dark mode too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
from cycler import cycler
from IPython.display import display
from matplotlib.axes import Axes
from matplotlib.figure import Figure

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


def figure(width: float = 6.4, height: float = 4.0, columns: int = 1) -> tuple[Figure, Any]:
    """A figure in the book's style, which holds from here on for the whole session.

    Parameters
    ----------
    width, height : size in inches.
    columns : number of panels side by side.

    Returns
    -------
    The figure, and its axes: one `Axes`, or an array of them if there are several columns.
    """
    plt.rcParams.update(STYLE)
    return plt.subplots(1, columns, figsize=(width, height), layout="constrained")


def frequency_with_interval(
    ax: Axes, x: Sequence[float], frequencies: Sequence[float], intervals: Sequence[tuple[float, float]], **style: Any
) -> None:
    """Draw frequencies as points with their confidence intervals (low, high) as bars."""
    below = [f - low for f, (low, _) in zip(frequencies, intervals, strict=True)]
    above = [high - f for f, (_, high) in zip(frequencies, intervals, strict=True)]
    bars: dict[str, Any] = {"fmt": "o", "capsize": 3} | style
    ax.errorbar(x, frequencies, yerr=[below, above], **bars)


def show(fig: Figure, alt: str) -> None:
    """Display a figure with a text that says what it shows, and close it.

    Raises
    ------
    ValueError
        if `alt` is empty: a figure without a description is invisible to some readers.
    """
    if not isinstance(alt, str) or not alt.strip():
        raise ValueError(f"alt: got {alt!r}; expected a sentence that says what the figure shows")
    display(fig, metadata={"image/png": {"alt": alt}})
    plt.close(fig)
