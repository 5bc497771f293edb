"""What the built pages need beyond the theme: figures with their alt text, and no scripts that wait for a network."""

from __future__ import annotations

import hashlib
import json
from binascii import a2b_base64
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging

logger = logging.getLogger(__name__)


def described(notebook: Path) -> dict[str, str]:
    """The alt texts of a notebook's PNG outputs, by the hash of the image, which is the name of its file."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    outputs = [o for c in cells for o in c.get("outputs", []) if "image/png" in o.get("data", {})]
    return {
        hashlib.sha256(a2b_base64(o["data"]["image/png"])).hexdigest(): o["metadata"]
        .get("image/png", {})
        .get("alt", "")
        for o in outputs
    }


def add_alt_texts(app: Sphinx, doctree: nodes.document) -> None:
    """Carry alt texts from the outputs to the page: myst-nb takes only width and height from an output's metadata."""
    notebook = Path(app.outdir).parent / "jupyter_execute" / f"{app.env.docname}.ipynb"
    if not notebook.exists():
        return
    texts = described(notebook)
    for image in doctree.findall(nodes.image):
        name = Path(image["uri"]).stem
        if texts.get(name):
            image["alt"] = texts[name]
        elif name in texts:
            logger.warning("a figure has no alt text: show it with sparsexor.plots.show", location=app.env.docname)


def drop_thebe(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    """Leave out the scripts for live cells, which Jupyter Book adds to every page and which need a server.

    Sphinx adds the inline one twice, so that each page would complain of a constant declared twice.
    """

    def is_thebe(script: Any) -> bool:
        return "thebe" in f"{script.filename} {script.attributes.get('body')}".lower()

    context["script_files"] = [s for s in context["script_files"] if not is_thebe(s)]


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("doctree-read", add_alt_texts)
    app.connect("html-page-context", drop_thebe)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
