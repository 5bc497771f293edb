"""The measurements that are too long for a chapter: committed tables, and the README's figure.

    python tools/tables.py success    writes book/one-step/success.csv (about eight minutes on one core)
    python tools/tables.py figure     writes book/_static/success.png, the figure of the chapter "One step"

The draws are seeded one by one, and no sum depends on the number of threads, so the same command gives the same table.
"""

from __future__ import annotations

import argparse
import base64
import csv
import json
import math
import statistics
from pathlib import Path

import numpy as np

from sparsexor import (
    antisymmetric_start,
    gradient_step,
    population_gradient,
    sample_positions,
    sup_error,
    theorem2_learning_rate,
)
from sparsexor.ledger import clopper_pearson

BOOK = Path(__file__).resolve().parents[1] / "book"
TABLE = BOOK / "one-step" / "success.csv"
CHAPTER = BOOK / "one-step" / "one-step.ipynb"
FIGURE = BOOK / "_static" / "success.png"

EPS = 0.01
SUPPORT = (0, 1)
SEEDS = {100: 400, 316: 400, 1000: 400, 3162: 400, 10_000: 400, 31_623: 200, 100_000: 100}
"""Number of draws for each d. The positions are exchangeable, so one support stands for all."""

LIVE = 60
"""The chapter repeats this many draws at the small dimensions and compares."""


def outcome(d: int, seed: int) -> tuple[str, float]:
    """One draw at m = ceil(log^2 d), from its own generator: how it ended, and the learning rate eta_0 (NaN if none).

    "success": the margins are positive, and at eta_0 every one of the 2^d inputs is learned to EPS. "outside support": the
    descent direction of a head favours a position outside the support. "same target": both heads favour the same target.
    """
    m = math.ceil(math.log(d) ** 2)
    rng = np.random.default_rng([d, seed])
    V = sample_positions(d, m, rng=rng)
    theta, theta_tilde = antisymmetric_start(m, rng=rng)
    try:
        eta = theorem2_learning_rate(V, theta, SUPPORT, EPS)
    except ValueError as error:
        if not str(error).startswith("margin"):
            raise
        gradients = population_gradient(V, theta, theta_tilde, SUPPORT)
        favourites = {int((V * g).sum(dim=1).argmin()) for g in gradients}
        return ("same target" if favourites <= set(SUPPORT) else "outside support"), math.nan
    after = gradient_step(V, theta, theta_tilde, SUPPORT, eta)
    return ("success" if sup_error(V, *after, SUPPORT) <= EPS else "bound failed"), eta


def success_table() -> None:
    """Measure and write the table, one row a dimension."""
    rows = []
    for d, seeds in SEEDS.items():
        kinds, rates = zip(*(outcome(d, seed) for seed in range(seeds)), strict=True)
        low, high = clopper_pearson(kinds.count("success"), seeds, confidence=0.95)
        m = math.ceil(math.log(d) ** 2)
        row = {"d": d, "m": m, "parameters": 2 * m, "seeds": seeds, "successes": kinds.count("success")}
        row |= {"same_target": kinds.count("same target"), "outside_support": kinds.count("outside support")}
        row |= {"low": f"{low:.4f}", "high": f"{high:.4f}"}
        row["median_eta0"] = f"{statistics.median(r for r in rates if not math.isnan(r)):.3g}"
        row["successes_live"] = kinds[:LIVE].count("success")
        rows.append(row)
        print(row, flush=True)
    with TABLE.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def readme_figure() -> None:
    """Copy the figure that the executed chapter drew: the cell with the tag "readme-figure"."""
    cells = json.loads(CHAPTER.read_text(encoding="utf-8"))["cells"]
    (cell,) = (c for c in cells if "readme-figure" in c["metadata"].get("tags", []))
    (png,) = (o["data"]["image/png"] for o in cell["outputs"] if "image/png" in o.get("data", {}))
    FIGURE.parent.mkdir(parents=True, exist_ok=True)
    FIGURE.write_bytes(base64.b64decode("".join(png)))


def main() -> None:
    """Run the command named on the command line."""
    commands = {"success": success_table, "figure": readme_figure}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", choices=commands)
    commands[parser.parse_args().table]()


if __name__ == "__main__":
    main()
