"""Execute notebooks in place, from a clean kernel, so that two runs leave the same bytes.

python tools/refresh.py                         all chapters
python tools/refresh.py book/question/task.ipynb ...
"""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

BOOK = Path(__file__).parent.parent / "book"
KERNEL = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def refresh(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=120,
        record_timing=False,
        coalesce_streams=True,
        resources={"metadata": {"path": str(path.parent)}},
    )
    client.execute()
    notebook.metadata = nbformat.from_dict(KERNEL)  # the kernel adds the patch version of its Python
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
    nbformat.write(notebook, path)


def main(arguments: list[str]) -> None:
    chosen = [Path(a) for a in arguments] or sorted(p for p in BOOK.rglob("*.ipynb") if "_build" not in p.parts)
    for path in chosen:
        print(path)
        refresh(path)


if __name__ == "__main__":
    main(sys.argv[1:])
