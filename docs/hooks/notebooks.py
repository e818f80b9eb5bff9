"""Makes a page of each notebook, with its saved outputs."""

import base64
import re
from pathlib import Path

import nbformat
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

FOLDER = Path(__file__).parents[2] / "notebooks"
BADGE = re.compile(r"\[!\[(.*?)\]\(.*?\)\]")  # an external image as the text of a link
PICTURES = {"image/svg+xml": "svg", "image/png": "png"}  # best first


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds a page for each notebook, and its pictures."""
    pages = []
    for notebook in sorted(FOLDER.glob("*.ipynb")):
        page = f"notebooks/{notebook.stem}.md"
        text, pictures = convert(notebook)
        files.append(File.generated(config, page, content=text))
        for name, content in pictures.items():
            files.append(File.generated(config, f"notebooks/{name}", content=content))
        pages.append(page)
    next(entry for entry in config.nav if "Notebooks" in entry)["Notebooks"] = pages
    return files


def convert(file: Path) -> tuple[str, dict[str, str | bytes]]:
    """Returns a notebook as Markdown, and the pictures in it by name."""
    parts: list[str] = []
    pictures: dict[str, str | bytes] = {}
    for cell in nbformat.read(file, as_version=4).cells:
        if cell.cell_type == "markdown":
            parts.append(BADGE.sub(r"[\1]", cell.source))
            continue
        parts.append(f"```python\n{cell.source}\n```")
        for output in cell.outputs:
            data = output.get("data", {"text/plain": output.get("text", "")})
            kind = next((kind for kind in PICTURES if kind in data), None)
            if kind:
                name = f"{file.stem}_{len(pictures)}.{PICTURES[kind]}"
                pictures[name] = base64.b64decode(data[kind]) if kind == "image/png" else data[kind]
                parts.append(f"![Output of the cell above]({name})")
            elif text := data.get("text/plain", "").rstrip():
                parts.append(f"```text\n{text}\n```")
    return "\n\n".join(parts) + "\n", pictures
