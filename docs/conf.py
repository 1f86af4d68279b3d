"""How Sphinx builds the site and the man pages: `make site`, `make man`."""

from __future__ import annotations

from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

from kubectl_qos import __version__

_REFERENCE = Path(__file__).parent / "reference"


def _man_page(page: Path) -> tuple[str, str, str, str, int]:
    """What Sphinx wants to know of a page of the reference: it becomes a man page."""
    _, _, summary, *_ = page.read_text(encoding="utf-8").splitlines()
    name = "kubectl-qos" if page.stem == "index" else f"kubectl-qos-{page.stem}"
    return (f"reference/{page.stem}", name, summary.removeprefix("<!-- ").removesuffix(" -->"), "", 1)


project = "kubectl-qos"
version = release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["rbac", "pictures", "schema"]
nitpicky = True

myst_heading_anchors = 4
myst_enable_extensions = ["deflist"]

autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
nitpick_ignore_regex = [("py:.*", ".*")]

highlight_language = "none"
smartquotes_action = "D"  # quotes stay as they are written
suppress_warnings = ["misc.highlighting_failure"]  # what a command prints is no shell
html_theme = "furo"
html_title = "kubectl-qos"
html_show_copyright = False
html_show_sphinx = False
html_copy_source = False
html_static_path = ["site.css"]
html_css_files = ["site.css"]

man_pages = [_man_page(page) for page in sorted(_REFERENCE.glob("*.md"))]


def _without_empty_links(_app: Sphinx, doctree: nodes.document, _name: str) -> None:
    """Links between man pages lead nowhere, and would be printed as `<>`."""
    for link in doctree.findall(nodes.reference):
        if link.get("refuri") == "":
            del link["refuri"]


def setup(app: Sphinx) -> None:
    """Sphinx asks for this name."""
    app.connect("doctree-resolved", _without_empty_links)
