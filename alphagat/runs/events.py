"""Scalars for TensorBoard, written in the calling thread."""

import time
from collections.abc import Mapping
from pathlib import Path

from tensorboardX import summary
from tensorboardX.event_file_writer import EventsWriter
from tensorboardX.proto.event_pb2 import Event, SessionLog  # pyright: ignore[reportAttributeAccessIssue]


class Events:
    """Appends scalars to a new file of TensorBoard events.

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

    def close(self) -> None:
        self._writer.close()

    def _write(self, event: Event) -> None:
        event.wall_time = time.time()
        self._writer.write_event(event)
