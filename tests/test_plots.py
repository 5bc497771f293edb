"""The figures' style: described, closed after showing, deterministic."""

import matplotlib
import pytest

matplotlib.use("agg")

from matplotlib import pyplot as plt

from sparsexor import plots


@pytest.fixture
def displayed(monkeypatch):
    calls = []
    monkeypatch.setattr(plots, "display", lambda fig, metadata: calls.append(metadata))
    return calls


def test_a_figure_is_shown_with_its_description_and_closed(displayed):
    fig, ax = plots.figure()
    ax.plot([0, 1], [0, 1])
    plots.show(fig, alt="A line from the lower left to the upper right.")
    assert displayed == [{"image/png": {"alt": "A line from the lower left to the upper right."}}]
    assert plt.get_fignums() == []


@pytest.mark.bad_input
@pytest.mark.parametrize(("error", "alt"), [(ValueError, ""), (ValueError, "   "), (TypeError, None), (TypeError, 3)])
def test_a_figure_without_a_description_is_refused(error, alt, displayed):
    fig, _ = plots.figure()
    with pytest.raises(error, match=r"^alt: got .*; expected"):
        plots.show(fig, alt=alt)
    assert displayed == []
    plt.close(fig)


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("arguments", "error", "name"),
    [
        ({"width": 0.0}, ValueError, "width"),
        ({"height": float("nan")}, ValueError, "height"),
        ({"width": "6"}, TypeError, "width"),
        ({"width": 1e6}, ValueError, "width"),
        ({"columns": 0}, ValueError, "columns"),
        ({"columns": 10**7}, ValueError, "columns"),
        ({"columns": True}, TypeError, "columns"),
    ],
)
def test_sizes_that_are_not_allowed_are_refused(arguments, error, name):
    with pytest.raises(error, match=f"^{name}: got"):
        plots.figure(**arguments)
    assert plt.get_fignums() == []


@pytest.mark.bad_input
def test_axes_in_place_of_a_figure_are_refused(displayed):
    fig, ax = plots.figure()
    with pytest.raises(TypeError, match=r"^fig: got Axes"):
        plots.show(ax, alt="A picture.")
    plt.close(fig)


@pytest.mark.bad_input
@pytest.mark.parametrize("intervals", [[], [(0.6, 0.7)], [(0.4, 0.7), (0.4, 0.7)], [(float("nan"), 0.7)]])
def test_intervals_that_do_not_belong_are_refused(intervals):
    fig, ax = plots.figure()
    with pytest.raises(ValueError, match=r"^intervals: got"):
        plots.frequency_with_interval(ax, [1.0], [0.5], intervals)
    plt.close(fig)


def test_several_columns_give_several_axes():
    fig, axes = plots.figure(columns=2)
    assert len(axes) == 2
    plt.close(fig)


def test_intervals_are_drawn_from_low_to_high():
    fig, ax = plots.figure()
    plots.frequency_with_interval(ax, [1.0], [0.5], [(0.4, 0.7)])
    (segment,) = ax.collections[0].get_segments()
    assert [y for _, y in segment] == pytest.approx([0.4, 0.7])
    plt.close(fig)


def test_colours_differ_in_lightness_for_those_who_see_no_hue():
    def luminance(colour):
        red, green, blue = matplotlib.colors.to_rgb(colour)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    first = [luminance(c) for c in list(plots.PALETTE.values())[:2]]
    assert abs(first[0] - first[1]) > 0.05
