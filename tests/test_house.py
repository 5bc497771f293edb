"""The house rules: pins, links, commands, names, the direction of imports, and nothing of this machine."""

import ast
import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import sparsexor

ROOT = Path(__file__).parent.parent
ORDER = ["task", "walsh", "positions", "attention", "transformer", "population", "samples", "one_step", "worst_input"]
"""A module imports only modules before it; the private ones serve all, `ledger` and `plots` serve the chapters."""
PRIVATE = {"_arguments", "_reduce", "_provers", "_audit"}
PUBLIC = [
    "SparseXor",
    "sample_positions",
    "antisymmetric_start",
    "softmax_attention",
    "TwoHeadAttention",
    "ClsTransformer",
    "population_loss",
    "population_gradient",
    "empirical_gradient",
    "empirical_gradient_from_data",
    "gradient_step",
    "sup_error",
    "theorem2_learning_rate",
]


def imported_by(module):
    tree = ast.parse((ROOT / "sparsexor" / f"{module}.py").read_text(encoding="utf-8"))
    names = [
        n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and (n.module or "").startswith("sparsexor")
    ]
    return {name.partition(".")[2] for name in names}


@pytest.mark.parametrize("module", ORDER)
def test_imports_go_in_one_direction(module):
    allowed = PRIVATE | set(ORDER[: ORDER.index(module)])
    assert imported_by(module) <= allowed


@pytest.mark.parametrize("module", ["ledger", "plots"])
def test_what_serves_the_chapters_imports_no_mathematics(module):
    assert imported_by(module) <= PRIVATE


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_are_importable_and_documented(name):
    thing = getattr(sparsexor, name)
    assert name in sparsexor.__all__ and len(inspect.getdoc(thing)) > 100


@pytest.mark.parametrize("module", [*ORDER, "ledger", "plots"])
def test_every_public_function_has_a_docstring(module):
    loaded = importlib.import_module(f"sparsexor.{module}")
    own = [
        t for n, t in vars(loaded).items() if not n.startswith("_") and getattr(t, "__module__", "") == loaded.__name__
    ]
    assert loaded.__doc__
    assert [t.__name__ for t in own if callable(t) and not inspect.getdoc(t)] == []


def test_requirements_are_pinned_exactly():
    lines = [x.split("#")[0].strip() for x in (ROOT / "requirements.txt").read_text().splitlines()]
    loose = [x for x in lines if x and not x.startswith("-") and not re.fullmatch(r"[\w.-]+==[\w.]+", x)]
    assert loose == [] and "-e ." in lines and "torch==2.13.0" in lines


def test_each_dependency_is_explained():
    pinned = re.findall(r"^([\w.-]+)==", (ROOT / "requirements.txt").read_text(), flags=re.MULTILINE)
    contributing = (ROOT / "CONTRIBUTING.md").read_text()
    assert [name for name in pinned if f"`{name}`" not in contributing] == []


@pytest.mark.parametrize("name", ["_config.yml", "_toc.yml"])
def test_the_books_settings_are_links_to_the_real_files(name):
    link = ROOT / "book" / name
    assert link.is_symlink() and link.resolve() == (ROOT / name).resolve()


def test_the_readmes_commands_exist():
    commands = re.findall(r"^make (\w+)", (ROOT / "README.md").read_text(), flags=re.MULTILINE)
    assert {"book", "test"} <= set(commands)
    makefile = (ROOT / "Makefile").read_text()
    assert [c for c in commands if not re.search(rf"^{c}:", makefile, flags=re.MULTILINE)] == []


def test_the_readmes_example_runs():
    readme = (ROOT / "README.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", readme, flags=re.DOTALL)
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 0 < float(result.stdout) <= 0.01


def test_nothing_names_a_machine():
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    texts = [
        p
        for p in listed.stdout.split()
        if p.endswith((".py", ".md", ".yml", ".toml", ".ipynb", ".txt", ".cff", "Makefile", "run"))
    ]
    home = re.compile(r"(?<![\w.])/(work|tmp|root|home)/")
    assert [
        p for p in texts if p != "tests/test_notebooks.py" and home.search((ROOT / p).read_text(encoding="utf-8"))
    ] == []
