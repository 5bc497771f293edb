"""Make every notebook outdated when what it rests on has changed, and never let a faulty build look finished."""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Iterator
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

DOCTREES = "environment.pickle"


def sources() -> Iterator[Path]:
    """The files that every notebook rests on: the module, the Sphinx extensions, and the pinned requirements."""
    spec = importlib.util.find_spec("sparsexor")
    package = Path(spec.origin).parent
    yield from sorted(package.rglob("*.py"))
    yield from sorted(Path(__file__).parent.parent.rglob("*.py"))
    yield from (p for name in ("requirements.txt", "constraints.txt") if (p := package.parent / name).exists())


def digest() -> str:
    total = hashlib.sha256()
    for path in sources():
        total.update(path.name.encode())
        total.update(path.read_bytes())
    return total.hexdigest()


def outdated_notebooks(
    app: Sphinx, env: BuildEnvironment, added: set[str], changed: set[str], removed: set[str]
) -> list[str]:
    """All notebooks, if the sources differ from those of the last finished build."""
    app.source_digest = digest()
    if getattr(env, "source_digest", None) == app.source_digest:
        return []
    return [name for name in env.found_docs if Path(env.doc2path(name)).suffix == ".ipynb"]


def remember_sources(app: Sphinx, env: BuildEnvironment) -> None:
    env.source_digest = app.source_digest


def forget_faulty_build(app: Sphinx, exception: Exception | None) -> None:
    """Drop the saved state after warnings: a page that warned would otherwise not be read, nor warn, next time."""
    if exception is None and app._warncount and app.warningiserror:
        (Path(app.doctreedir) / DOCTREES).unlink(missing_ok=True)


def setup(app: Sphinx) -> None:
    app.connect("env-get-outdated", outdated_notebooks)
    app.connect("env-updated", remember_sources)
    app.connect("build-finished", forget_faulty_build)
