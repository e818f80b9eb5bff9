"""Makes pages from files outside `docs/`, and turns links between files of the repository into links between pages."""

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
DOCS = "docs/"
CARDS = sorted(file.name for file in (ROOT / "alphagat/weights").glob("*.md") if file.name != "README.md")

# The file of the repository that each page shows.
SOURCES = {
    "overview.md": "README.md",
    "networks/index.md": "alphagat/weights/README.md",
    **{f"networks/{card}": f"alphagat/weights/{card}" for card in CARDS},
    "changelog.md": "CHANGELOG.md",
    "contributing.md": "CONTRIBUTING.md",
    "LICENSE.txt": "LICENSE",
    "CITATION.cff": "CITATION.cff",
    "assets/logo.svg": "alphagat/web/logo.svg",
}
LINK = re.compile(r"(?<=\]\()([^)\s:#]*)(#[^)\s]*)?(?=\))")
CODE = re.compile(r"(^```.*?^```|`[^`\n]+`)", re.MULTILINE | re.DOTALL)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages of `SOURCES`, and the cards of the shipped networks to the navigation."""
    for page, source in SOURCES.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text(encoding="utf-8")))
    for entry in config.nav or ():
        if "Results" in entry:
            entry["Results"] += [f"networks/{card}" for card in CARDS]
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turns links to files into links to their pages. MkDocs reports links to files without a page."""
    here = page.file.src_uri
    at_root = here.startswith("notebooks/")  # the folder of the notebooks
    file = SOURCES[here] if here in SOURCES else here if at_root else DOCS + here

    def lead(link: re.Match[str]) -> str:
        path, anchor = link[1] or "", link[2] or ""
        target = posixpath.normpath(posixpath.join(posixpath.dirname(file), path)) if path else file
        found, _, own_anchor = (_page_of(target, files) or "").partition("#")
        if not found:
            return link[0]
        to = "" if found == here else posixpath.relpath(found, posixpath.dirname(here) or ".")
        return to + (anchor or (own_anchor and f"#{own_anchor}"))

    parts = CODE.split(markdown)  # alternately text and code
    parts[::2] = [LINK.sub(lead, part).replace('src="docs/', 'src="') for part in parts[::2]]
    return "".join(parts)


def _page_of(file: str, files: Files) -> str | None:
    """Returns the page of a file, with an anchor if there is one."""
    if file.endswith(".py"):
        return _reference_of(Path(file), files)
    if file.endswith(".ipynb"):
        return file.removesuffix(".ipynb") + ".md"
    pages = [page for page, source in SOURCES.items() if source == file]
    return pages[0] if pages else file.removeprefix(DOCS) if file.startswith(DOCS) else None


def _reference_of(file: Path, files: Files) -> str | None:
    """Returns where the reference shows a module: a command, the config, or a place on the page of its package."""
    module = ".".join(file.with_suffix("").parts)
    package = ".".join(file.parent.parts)
    own_pages = (f"reference/commands/{file.stem}.md", f"reference/{file.stem}.md")
    places = [*own_pages, f"reference/{package}.md" + (f"#{module}" if file.stem != "__init__" else "")]
    return next((place for place in places if files.get_file_from_path(place.partition("#")[0])), None)
