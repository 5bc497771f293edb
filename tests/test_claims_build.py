"""The ledger's Sphinx side, on small books that are really built: what stands is shown, what does not stops the build."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

import sparsexor
from sparsexor.ledger import MIME

PACKAGE = Path(sparsexor.__file__).parent
EXTENSION = PACKAGE.parent / "book" / "_ext"

CONF = f"""
import sys
sys.path.insert(0, {str(EXTENSION)!r})
extensions = ["myst_nb", "sphinx_proof", "claims"]
myst_enable_extensions = ["dollarmath"]
nb_execution_mode = "force"
nb_execution_raise_on_error = True
suppress_warnings = ["mystnb.unknown_mime_type"]
html_theme = "basic"
exclude_patterns = ["_build"]
"""
INDEX = "# A book\n\n```{toctree}\npage\nledger\n```\n"
LEDGER = "# Ledger\n\n```{ledger-statements}\n```\n\n```{ledger-paper}\n```\n"
CHECK = 'import sympy as sp\nfrom sparsexor.ledger import control, identity\nu = sp.Symbol("u")\nidentity("{label}", u + u, 2 * u)'
CONTROL = 'control("{label}", 3 * u, changed="3 in place of 2")'


def statement(label, text="Text.", proof="By algebra.", title="Title — ours", options=""):
    return f"```{{prf:lemma}} {title}\n:label: {label}\n{options}\n{text}\n```\n\n```{{prf:proof}}\n{proof}\n```\n"


def write_book(folder, cells):
    folder.mkdir(exist_ok=True)
    (folder / "conf.py").write_text(CONF)
    (folder / "index.md").write_text(INDEX)
    (folder / "ledger.md").write_text(LEDGER)
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    nbformat.write(new_notebook(cells=[new_markdown_cell("# Page"), *cells], metadata=kernel), folder / "page.ipynb")


def build(folder, package_parent=PACKAGE.parent):
    """Build as `jupyter-book build` does, in a process of its own, with the package found in `package_parent`."""
    command = [sys.executable, "-m", "sphinx", "-b", "html", folder, folder / "_build" / "html"]
    environment = os.environ | {"PYTHONPATH": str(package_parent)}
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder)


def executed_at(folder):
    return (folder / "_build" / "jupyter_execute" / "page.ipynb").stat().st_mtime_ns


def test_a_sound_book_builds_and_runs_again_only_when_the_sources_change(tmp_path):
    sources = tmp_path / "copy"
    shutil.copytree(PACKAGE, sources / "sparsexor", ignore=shutil.ignore_patterns("__pycache__"))
    book = tmp_path / "book"
    cells = [
        new_markdown_cell(statement("sound", options=":covers: P1, P4\n")),
        new_code_cell(CHECK.format(label="sound")),
    ]
    write_book(book, [*cells, new_code_cell(CONTROL.format(label="sound"))])

    first = build(book, sources)
    assert first.returncode == 0, first.stderr
    page = (book / "_build" / "html" / "ledger.html").read_text()
    assert 'href="page.html#sound"' in page and "Lemma 1" in page
    assert page.count("not covered yet") == 10
    assert "proved" in page and "identity" in page
    ran = executed_at(book)

    again = build(book, sources)
    assert again.returncode == 0 and executed_at(book) == ran

    with (sources / "sparsexor" / "task.py").open("a") as source:
        source.write("\n# a change\n")
    changed = build(book, sources)
    assert changed.returncode == 0 and executed_at(book) > ran


def test_every_fault_of_the_ledger_stops_the_build(tmp_path):
    statements = [
        statement("no-control"),
        statement("no-check"),
        statement("no-target", text="Uses {prf:ref}`nowhere`."),
        statement("round", proof="By {prf:ref}`about`."),
        statement("about", proof="By {prf:ref}`round`."),
        statement("no-origin", title="Title"),
        statement("bad-cover", options=":covers: P99\n"),
        "```{prf:theorem} Title — ours\n:label: no-proof\n\nText.\n```\n",
    ]
    code = CHECK.format(label="no-control") + '\nidentity("stray", u + u, 2 * u)'
    write_book(tmp_path, [*map(new_markdown_cell, statements), new_code_cell(code)])
    result = build(tmp_path)
    assert result.returncode != 0
    for words in (
        "lemma 'no-control' has no negative control",
        "lemma 'no-check' has no passing check",
        "uses 'nowhere'",
        "rests on itself",
        "'no-origin' has no origin",
        "covers 'P99'",
        "theorem 'no-proof' has no proof",
        "a check names 'stray'",
    ):
        assert words in result.stderr, words
    assert "lemma 'no-control' has no passing check" not in result.stderr
    assert not (tmp_path / "_build" / "html" / "ledger.html").exists()


def test_committed_outputs_count_for_nothing(tmp_path):
    forged = {"claim": "forged", "kind": "identity", "outcome": "true", "method": "", "against": ""}
    output = new_output("display_data", data={"text/plain": "✓", MIME: forged})
    idle = new_code_cell("1 + 1", execution_count=1, outputs=[output])
    write_book(tmp_path, [new_markdown_cell(statement("forged")), idle])
    result = build(tmp_path)
    assert result.returncode != 0 and "lemma 'forged' has no passing check" in result.stderr


def test_a_control_that_is_not_rejected_stops_the_build(tmp_path):
    cells = [
        new_markdown_cell(statement("red")),
        new_code_cell(CHECK.format(label="red")),
        new_code_cell(CONTROL.format(label="red")),
    ]
    write_book(tmp_path, [*cells, new_code_cell('control("red", 2 * u)')])
    result = build(tmp_path)
    assert result.returncode != 0 and "page.ipynb" in result.stderr, result.stderr
