"""The Sphinx side of the ledger.

While pages are read it collects every statement (label, origin, what it covers, what it uses); when all are read it
takes the verdicts from the notebooks that this build has executed, applies the rules of `sparsexor._audit`, and stops
the build if one is broken. The ledger page is drawn from the same data. A change in the sources of `sparsexor`
makes every notebook outdated, so no verdict outlives the code it was reached with.
"""

from __future__ import annotations

from typing import Any

from sphinx.application import Sphinx

from claims import collect, page, stale


def setup(app: Sphinx) -> dict[str, Any]:
    app.setup_extension("sphinx_proof")
    collect.setup(app)
    stale.setup(app)
    page.setup(app)
    return {"version": "1", "parallel_read_safe": False, "parallel_write_safe": True, "env_version": 1}
