"""Draw the ledger page: every statement with what backs it, and the paper's claims with what covers them."""

from __future__ import annotations

from collections.abc import Iterable

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from claims.collect import in_order
from sparsexor._audit import PAPER_CLAIMS, Claim, Support, covering, status, support_of

Cell = list[nodes.Node]


class ledger_table(nodes.General, nodes.Element):
    """Stands where a table of the ledger goes, until all pages are read."""


class LedgerTable(SphinxDirective):
    """``{ledger-statements}`` or ``{ledger-paper}``: one of the two tables of the ledger."""

    def run(self) -> list[nodes.Node]:
        if not hasattr(self.env, "ledger_pages"):
            self.env.ledger_pages = set()
        self.env.ledger_pages.add(self.env.docname)
        return [ledger_table(kind=self.name)]


def draw(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    for place in list(doctree.findall(ledger_table)):
        draw_one = statements_table if place["kind"] == "ledger-statements" else paper_table
        place.replace_self(draw_one(app, docname))


def statements_table(app: Sphinx, docname: str) -> nodes.Node:
    supports = support_of(app.env.book_verdicts)
    claims = [c for c in in_order(app.env) if c.type not in ("remark", "example")]
    known = {c.label: c for c in claims}
    rows = []
    for claim in claims:
        support = supports.get(claim.label, Support())
        uses = [link(app, docname, known[u]) for u in claim.uses if u in known]
        title = link(app, docname, claim)
        first = [title, nodes.Text(f" {claim.title} "), nodes.literal(text=claim.label)]
        rows.append(
            [first, text(claim.origin), text(status(claim, support)), text(counted(support.checks)),
             text(counted(support.controls)), joined(uses)]
        )  # fmt: skip
    return table(("Statement", "Origin", "Status", "Checks that passed", "Wrong variants rejected by", "Uses"), rows)


def paper_table(app: Sphinx, docname: str) -> nodes.Node:
    rows = []
    for paper, claims in covering(in_order(app.env)).items():
        covered = joined([link(app, docname, c) for c in claims]) if claims else [nodes.strong(text="not covered yet")]
        rows.append([text(paper), text(PAPER_CLAIMS[paper]), covered])
    return table(("Id", "Claim of the paper", "Covered by"), rows)


def link(app: Sphinx, docname: str, claim: Claim) -> nodes.Node:
    """A link to a statement that shows its type and number."""
    label = nodes.literal(text=claim.label)
    return app.env.get_domain("prf").resolve_xref(
        app.env, docname, app.builder, "ref", claim.label, _asking("prf"), label
    )


def _asking(domain: str) -> nodes.Element:
    """The attributes by which sphinx-proof recognises a reference of its own."""
    node = nodes.Element()
    node["refdomain"] = domain
    return node


def text(words: str) -> Cell:
    return [nodes.Text(words or "–")]


def counted(kinds: dict[str, int]) -> str:
    return ", ".join(kind if n == 1 else f"{n}\u00a0×\u00a0{kind}" for kind, n in sorted(kinds.items()))


def joined(links: Iterable[nodes.Node]) -> Cell:
    cells: Cell = []
    for each in links:
        cells += [nodes.Text(", "), each]
    return cells[1:] or text("")


def table(heads: tuple[str, ...], rows: list[list[Cell]]) -> nodes.Node:
    """A table in a box of its own, which scrolls sideways on a narrow screen."""
    group = nodes.tgroup("", *(nodes.colspec(colwidth=1) for _ in heads), cols=len(heads))
    group += nodes.thead("", table_row([text(h) for h in heads]))
    group += nodes.tbody("", *(table_row(row) for row in rows))
    return nodes.container("", nodes.table("", group, classes=["table"]), classes=["scrolling-table"])


def table_row(cells: list[Cell]) -> nodes.row:
    return nodes.row("", *(nodes.entry("", nodes.paragraph("", "", *cell)) for cell in cells))


def setup(app: Sphinx) -> None:
    app.add_node(ledger_table)
    app.add_directive("ledger-statements", LedgerTable)
    app.add_directive("ledger-paper", LedgerTable)
    app.connect("doctree-resolved", draw)
