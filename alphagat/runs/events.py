"""Scalars, pictures and the config for TensorBoard, written in the calling thread."""

import struct
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import resvg_py
from tensorboardX import summary
from tensorboardX.event_file_writer import EventsWriter
from tensorboardX.proto.event_pb2 import Event, SessionLog  # pyright: ignore[reportAttributeAccessIssue]
from tensorboardX.proto.summary_pb2 import Summary  # pyright: ignore[reportAttributeAccessIssue]

RGBA = 4  # channels
HEADER = slice(16, 24)  # of a PNG file: width and height


class Events:
    """Writes scalars, pictures and the config to a new file of TensorBoard events.

    `tensorboardX.SummaryWriter` is not used, because its thread dies when the disk is full, and the next call then
    waits for it forever.
    """

    def __init__(self, folder: Path, *, purge_step: int, suffix: str):
        """Starts a file with the name ending `suffix`. TensorBoard hides the events of other files from `purge_step`
        on.
        """
        folder.mkdir(exist_ok=True)
        self._writer = EventsWriter(str(folder / "events"), suffix)
        start = SessionLog(status=SessionLog.START)
        self._write(Event(step=purge_step, file_version="brain.Event:2"))
        self._write(Event(step=purge_step, session_log=start))

    def add(self, scalars: Mapping[str, float], step: int) -> None:
        """Writes scalars by tag and flushes."""
        for tag, value in scalars.items():
            self._write(Event(step=step, summary=summary.scalar(tag, value)))
        self._writer.flush()

    def add_picture(self, tag: str, drawing: str, step: int) -> None:
        """Writes an SVG document as an image, and flushes."""
        image = bytes(resvg_py.svg_to_bytes(svg_string=drawing, background="white"))
        width, height = struct.unpack(">II", image[HEADER])
        picture = Summary.Image(width=width, height=height, colorspace=RGBA, encoded_image_string=image)
        self._write(Event(step=step, summary=Summary(value=[Summary.Value(tag=tag, image=picture)])))
        self._writer.flush()

    def describe(self, settings: Mapping[str, Any], metrics: Sequence[str]) -> None:
        """Writes the settings of a run as a table (Text) and as hyperparameters (HParams), and flushes.

        Args:
          metrics: tags of scalars that TensorBoard shows beside the hyperparameters.
        """
        rows = "".join(f"| {name} | {value} |\n" for name, value in settings.items())
        plain = {
            name: value if isinstance(value, bool | int | float) else str(value) for name, value in settings.items()
        }
        tags = [summary.scalar(tag, 0.0).value[0].tag for tag in metrics]  # as `add` writes them: `hex:5` is `hex_5`
        for part in (
            summary.text("config", f"| field | value |\n|---|---|\n{rows}"),
            *summary.hparams(plain, dict.fromkeys(tags, 0.0)),
        ):
            self._write(Event(step=0, summary=part))
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()

    def _write(self, event: Event) -> None:
        event.wall_time = time.time()
        self._writer.write_event(event)
