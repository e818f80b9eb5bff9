"""Makes pages from files outside `docs/`, and turns links between files of the repository into links between pages."""

import posixpath
import re
from pathlib import Path
from typing import NamedTuple

from markdown.extensions.toc import slugify
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
DOCS = "docs/"


class Source(NamedTuple):
    """The source of a page: a file of the repository, or one section of it."""

    file: str
    section: str = ""


SOURCES = {
    "index.md": Source("README.md"),
    "guides/add_a_game.md": Source("README.md", "Add a game"),
    "networks/index.md": Source("alphagat/weights/README.md"),
    "networks/hex.md": Source("alphagat/weights/hex.md"),
    "networks/connect_four.md": Source("alphagat/weights/connect_four.md"),
    "networks/othello.md": Source("alphagat/weights/othello.md"),
    "changelog.md": Source("CHANGELOG.md"),
    "contributing.md": Source("CONTRIBUTING.md"),
    "LICENSE.txt": Source("LICENSE"),
    "assets/logo.svg": Source("alphagat/web/logo.svg"),
}
HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)
LINK = re.compile(r"(?<=\]\()([^)\s:#]*)(#[^)\s]*)?(?=\))")
CODE = re.compile(r"(^```.*?^```|`[^`\n]+`)", re.MULTILINE | re.DOTALL)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages of `SOURCES`."""
    for page, source in SOURCES.items():
        files.append(File.generated(config, page, content=text_of(source)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turns links to files into links to their pages. MkDocs reports links to files without a page."""
    here = page.file.src_uri
    at_root = here.startswith("notebooks/")  # the folder of the notebooks
    file = SOURCES[here].file if here in SOURCES else here if at_root else DOCS + here

    def lead(link: re.Match[str]) -> str:
        path, anchor = link[1] or "", link[2] or ""
        target = posixpath.normpath(posixpath.join(posixpath.dirname(file), path)) if path else file
        found, _, own_anchor = (_page_of(target, anchor[1:], files) or "").partition("#")
        if not found:
            return link[0]
        to = "" if found == here else posixpath.relpath(found, posixpath.dirname(here) or ".")
        return to + (anchor or (own_anchor and f"#{own_anchor}"))

    parts = CODE.split(markdown)  # alternately text and code
    parts[::2] = [LINK.sub(lead, part) for part in parts[::2]]
    return "".join(parts)


def text_of(source: Source) -> str:
    """Returns the text of a page. A whole file omits the sections that have their own pages.

    Raises:
      ValueError: the file has no such section.
    """
    text = (ROOT / source.file).read_text(encoding="utf-8")
    sections = {match[0][3:]: match for match in _sections(text)}
    if source.section:
        if source.section not in sections:
            raise ValueError(f"{source.file} has no section {source.section!r}")
        return re.sub(r"^#(#+ )", r"\1", "".join(sections[source.section]), flags=re.MULTILINE)
    elsewhere = [each.section for each in SOURCES.values() if each.file == source.file and each.section]
    for name in elsewhere:
        text = text.replace("".join(sections[name]), "")
    return text


def _sections(text: str) -> list[tuple[str, str]]:
    """Returns the heading and the rest of each section of level 2."""
    return re.findall(r"^(## [^\n]+)(\n.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)


def _page_of(file: str, anchor: str, files: Files) -> str | None:
    """Returns the page of a file, with an anchor if there is one."""
    if file.endswith(".py"):
        return _reference_of(Path(file), files)
    if file.endswith(".ipynb"):
        return file.removesuffix(".ipynb") + ".md"
    pages = [page for page, source in SOURCES.items() if source.file == file]
    for page in pages:
        headings = HEADING.findall(text_of(SOURCES[page])) if anchor else []
        if anchor in (slugify(heading, "-") for heading in headings):
            return page
    return pages[0] if pages else file.removeprefix(DOCS) if file.startswith(DOCS) else None


def _reference_of(file: Path, files: Files) -> str | None:
    """Returns where the reference shows a module: a command, the config, or a place on the page of its package."""
    module = ".".join(file.with_suffix("").parts)
    package = ".".join(file.parent.parts)
    own_pages = (f"reference/commands/{file.stem}.md", f"reference/{file.stem}.md")
    places = [*own_pages, f"reference/{package}.md" + (f"#{module}" if file.stem != "__init__" else "")]
    return next((place for place in places if files.get_file_from_path(place.partition("#")[0])), None)
