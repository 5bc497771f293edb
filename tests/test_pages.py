"""The built pages as a reader sees them: opened from disk in Chromium, wide and narrow, with no network."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
HTML = ROOT / "book" / "_build" / "html"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
PAGES = ["intro", *re.findall(r"^\s*- file: (\S+)", (ROOT / "_toc.yml").read_text(), flags=re.MULTILINE)]
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
DESK = {"viewport": {"width": 1280, "height": 900}}
PHONE = {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 2, "is_mobile": True, "has_touch": True}

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")


@pytest.fixture(scope="session")
def built_book():
    """The book, built strictly; pages that are up to date are not built again."""
    jupyter_book = Path(sys.executable).with_name("jupyter-book")
    command = [jupyter_book, "build", "-n", "-W", "--keep-going", "book"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    return HTML


@pytest.fixture(scope="session")
def browser(built_book):
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield chromium
        chromium.close()


class Visit:
    """One page, opened on one screen, with all that it asked for and complained about."""

    def __init__(self, browser, path, screen):
        self.path, self.requests, self.complaints = path, [], []
        context = browser.new_context(**screen)
        self.page = context.new_page()
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("requestfailed", self.note_failure)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.goto(path.as_uri(), wait_until="load")
        self.page.wait_for_function("() => !window.MathJax || (MathJax.startup && MathJax.startup.promise)")
        self.page.evaluate("() => window.MathJax && MathJax.startup.promise")
        self.page.evaluate("() => document.querySelectorAll('img').forEach(image => { image.loading = 'eager' })")
        self.text = self.page.inner_text("article")

    def note_failure(self, request):
        """Chromium preloads no font for a page from disk; the theme's icons are drawn by a script instead."""
        if not request.url.endswith(".woff2"):
            self.complaints.append(f"failed: {request.url}")


@pytest.fixture(scope="module", params=PAGES)
def visit(request, browser):
    visit = Visit(browser, HTML / f"{request.param}.html", DESK)
    yield visit
    visit.page.context.close()


@pytest.fixture(scope="module")
def phone(visit, browser):
    """The same page on a phone."""
    narrow = Visit(browser, visit.path, PHONE)
    yield narrow.page
    narrow.page.context.close()


def test_nothing_is_asked_of_the_network(visit):
    assert [url for url in visit.requests if not url.startswith(("file:", "data:", "blob:"))] == []
    assert visit.complaints == []


def test_math_is_rendered(visit):
    sources = visit.page.locator(".math").count()
    assert visit.page.locator("mjx-container").count() >= sources
    assert visit.page.locator("mjx-merror, [data-mjx-error]").count() == 0
    assert "$$" not in visit.text and r"\(" not in visit.text and r"\begin{" not in visit.text


def test_no_raw_markup_is_left(visit):
    without_code = visit.page.evaluate(
        """() => {
            const copy = document.querySelector('article').cloneNode(true);
            copy.querySelectorAll('pre, code, dt.sig, .verdict').forEach(node => node.remove());
            return copy.textContent;
        }"""
    )
    for markup in ("{prf:", "{cite", "```", ":label:", ":covers:", "](", "prf:ref"):
        assert markup not in without_code, markup
    assert re.search(r"\*\*\w[^*\n]*\*\*", without_code) is None, "bold text that was not recognised"


def test_every_figure_loads_and_is_described(visit):
    images = visit.page.locator("article img")
    for n in range(images.count()):
        alt = images.nth(n).get_attribute("alt") or ""
        assert len(alt) > 20 and not re.search(r"\.(png|svg|jpg)$", alt)
        assert images.nth(n).evaluate("image => image.decode().then(() => image.naturalWidth > 0)")


def test_nothing_sticks_out_on_a_phone(phone):
    width = phone.evaluate("() => Math.max(document.scrollingElement.scrollWidth, document.body.scrollWidth)")
    culprits = phone.evaluate(
        """() => [...document.querySelectorAll('article *')]
            .filter(node => node.getBoundingClientRect().right > 391 && !node.closest('mjx-container, pre, table, .output'))
            .slice(0, 5).map(node => node.outerHTML.slice(0, 120))"""
    )
    assert width <= PHONE["viewport"]["width"], culprits


def test_no_statement_needs_scrolling_on_a_phone(phone, visit):
    """Statements are broken to fit; only derivations and proofs may scroll, in a box of their own."""
    statements = phone.locator("div.proof.admonition:not(#proof)")
    is_chapter = visit.path.parent.name not in ("html", "appendix")
    assert statements.count() >= 1 or not is_chapter
    too_wide = statements.evaluate_all(
        """boxes => boxes.flatMap(box => [...box.querySelectorAll('div.math, mjx-container[display="true"]')]
            .filter(math => math.scrollWidth > math.clientWidth + 1)
            .map(math => `${box.id}: ${math.scrollWidth} > ${math.clientWidth}`))"""
    )
    assert too_wide == []
