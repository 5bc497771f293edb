"""The committed notebooks: executed in order, free of what belongs to one machine, and in the form of a chapter."""

import ast
import json
import re
from pathlib import Path

import pytest

BOOK = Path(__file__).parent.parent / "book"
NOTEBOOKS = sorted(p for p in BOOK.rglob("*.ipynb") if "_build" not in p.parts)
LONGEST_CELL = 25


def cells(path, kind):
    return [c for c in json.loads(path.read_text(encoding="utf-8"))["cells"] if c["cell_type"] == kind]


def source(path, kind):
    return "\n".join("".join(c["source"]) for c in cells(path, kind))


def caught(code):
    """Names of the exceptions that the code catches: a named ValueError may be counted, a failed check may not."""
    handlers = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.ExceptHandler)]
    named = [node for handler in handlers if handler.type for node in ast.walk(handler.type)]
    names = {node.id for node in named if isinstance(node, ast.Name)} | {
        n.attr for n in named if isinstance(n, ast.Attribute)
    }
    return names | {"everything" for handler in handlers if not handler.type}


def test_a_swallowed_check_would_be_seen():
    attempt = "try:\n    identity('x', 1, 2)\nexcept {}:\n    pass"
    assert caught(attempt.format("(ValueError, ledger.CheckFailed)")) >= {"ValueError", "CheckFailed"}
    assert caught("try:\n    pass\nexcept:\n    pass") == {"everything"}


@pytest.fixture(params=NOTEBOOKS, ids=lambda p: p.stem)
def notebook(request):
    return request.param


def test_there_are_notebooks_for_all_chapters():
    listed = set(re.findall(r"^\s*- file: (\S+)", (BOOK.parent / "_toc.yml").read_text(), flags=re.MULTILINE))
    assert {str(p.relative_to(BOOK).with_suffix("")) for p in NOTEBOOKS} == {n for n in listed if "appendix" not in n}


def test_every_cell_was_run_in_order(notebook):
    counts = [c["execution_count"] for c in cells(notebook, "code")]
    assert counts == list(range(1, len(counts) + 1))


def test_no_trace_of_a_machine_or_a_time(notebook):
    text = notebook.read_text(encoding="utf-8")
    assert "iopub.execute_input" not in text
    assert not re.search(r"(?<![\w.])/(work|tmp|root|home|usr)/", text)


def test_no_errors_warnings_or_skipped_cells(notebook):
    for cell in cells(notebook, "code"):
        assert all(o["output_type"] != "error" and o.get("name") != "stderr" for o in cell["outputs"])
        assert not {"raises-exception", "nbval-skip", "skip-execution"} & set(cell["metadata"].get("tags", []))
    code = source(notebook, "code")
    assert not re.search(r"NBVAL_|# ?noqa|suppress\(", code)
    assert not caught(code) & {"everything", "Exception", "BaseException", "AssertionError", "CheckFailed"}


def test_cells_are_short(notebook):
    longest = max(len("".join(c["source"]).splitlines()) for c in cells(notebook, "code"))
    assert longest <= LONGEST_CELL


def test_a_chapter_has_its_parts(notebook):
    words, code = source(notebook, "markdown"), source(notebook, "code")
    assert "**Where we are.**" in words and "## What this chapter has earned" in words
    assert words.count("```{prf:proof}") >= 1
    assert re.search(r"\bcontrol\(", code) and re.search(r"\b(identity|inequality)\(", code)
    assert re.search(r"\bshow\(", code), "a chapter has a figure"


def test_figures_have_alt_text(notebook):
    outputs = [o for c in cells(notebook, "code") for o in c["outputs"] if "image/png" in o.get("data", {})]
    assert outputs
    assert all(len(o["metadata"]["image/png"]["alt"]) > 20 for o in outputs)
