"""Collect the statements while pages are read, and the verdicts once notebooks have run; then apply the rules."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.errors import ExtensionError
from sphinx_proof.nodes import proof_node
from sphinx_proof.proof_type import PROOF_TYPES

from sparsexor._audit import ORIGINS, PROVABLE, Claim, faults
from sparsexor.ledger import MIME

ORIGIN = re.compile(rf"\s*—\s*({'|'.join(ORIGINS)})\s*$")
"""A title ends with an em dash and the statement's origin."""


def with_covers(directive: type) -> type:
    """The sphinx-proof directive with one more option: the paper's claims that the statement covers."""

    class Statement(directive):
        option_spec = {**directive.option_spec, "covers": lambda value: re.split(r"[,\s]+", (value or "").strip())}

        def run(self) -> list[nodes.Node]:
            produced = super().run()
            produced[0]["covers"] = self.options.get("covers", [])
            produced[0]["claim_title"] = self.arguments[0] if self.arguments else ""
            return produced

    Statement.__name__ = directive.__name__
    return Statement


def read_statements(app: Sphinx, doctree: nodes.document) -> None:
    """Note a page's statements; a proof belongs to the latest statement before it that needs one."""
    found: list[dict[str, Any]] = []
    for node in doctree.findall(nodes.Element):
        if node.get("realtype") and node.get("label"):
            origin = ORIGIN.search(node["claim_title"])
            found.append(
                {
                    "label": node["label"],
                    "type": node["realtype"],
                    "title": ORIGIN.sub("", node["claim_title"]),
                    "origin": origin.group(1) if origin else "",
                    "covers": tuple(node["covers"]),
                    "uses": references(node),
                    "has_proof": False,
                }
            )
        elif isinstance(node, proof_node):
            provable = [c for c in found if c["type"] in PROVABLE]
            if provable:
                provable[-1]["has_proof"] = True
                provable[-1]["uses"] += references(node)
    docname = app.env.docname
    claims_of(app.env)[docname] = [
        Claim(docname=docname, **{**c, "uses": tuple(dict.fromkeys(c["uses"]))}) for c in found
    ]


def references(node: nodes.Element) -> tuple[str, ...]:
    """The labels that a statement or proof refers to with the prf:ref role."""
    return tuple(x["reftarget"] for x in node.findall(pending_xref) if x.get("refdomain") == "prf")


def claims_of(env: BuildEnvironment) -> dict[str, list[Claim]]:
    """The statements of each page read so far."""
    if not hasattr(env, "book_claims"):
        env.book_claims = {}
    return env.book_claims


def in_order(env: BuildEnvironment) -> list[Claim]:
    """All statements, in the order of the table of contents."""
    order: list[str] = []

    def visit(docname: str) -> None:
        order.append(docname)
        for child in env.toctree_includes.get(docname, []):
            visit(child)

    visit(env.config.root_doc)
    pages = claims_of(env)
    return [c for docname in [*order, *sorted(set(pages) - set(order))] for c in pages.get(docname, [])]


def executed_verdicts(app: Sphinx) -> list[dict[str, str]]:
    """The verdicts in the notebooks that the build has executed."""
    if app.config.nb_execution_mode != "force":
        raise ExtensionError(
            f"execute_notebooks: got {app.config.nb_execution_mode!r}; the ledger needs 'force', or verdicts would be stale"
        )
    folder = Path(app.outdir).parent / "jupyter_execute"
    verdicts = []
    for docname in sorted(app.env.found_docs):
        if Path(app.env.doc2path(docname)).suffix == ".ipynb":
            cells = json.loads((folder / f"{docname}.ipynb").read_text(encoding="utf-8"))["cells"]
            outputs = (o for c in cells for o in c.get("outputs", []))
            verdicts += [o["data"][MIME] for o in outputs if MIME in o.get("data", {})]
    return verdicts


def check_ledger(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Apply the ledger's rules; the returned pages are drawn anew, since they show data of all the others."""
    env.book_verdicts = executed_verdicts(app)
    found = faults(in_order(env), env.book_verdicts)
    if found:
        raise ExtensionError("the ledger does not stand:\n" + "\n".join(f"- {fault}" for fault in found))
    return sorted(getattr(env, "ledger_pages", set()))


def forget(app: Sphinx, env: BuildEnvironment, docname: str) -> None:
    claims_of(env).pop(docname, None)


def setup(app: Sphinx) -> None:
    for name, directive in PROOF_TYPES.items():
        app.add_directive_to_domain("prf", name, with_covers(directive), override=True)
    app.connect("doctree-read", read_statements)
    app.connect("env-purge-doc", forget)
    app.connect("env-updated", check_ledger)
