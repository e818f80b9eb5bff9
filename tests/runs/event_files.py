"""Reads TensorBoard files without TensorBoard."""

import struct
from pathlib import Path

from tensorboardX.proto.event_pb2 import Event

from alphagat.runs.metrics import TENSORBOARD_FOLDER


def events(folder: Path) -> list[Event]:
    """Parses TensorBoard's records: length, checksum, event, checksum."""
    found = []
    for file in sorted((folder / TENSORBOARD_FOLDER).iterdir()):
        data, at = file.read_bytes(), 0
        while at < len(data):
            (length,) = struct.unpack_from("<Q", data, at)
            found.append(Event.FromString(data[at + 12 : at + 12 + length]))
            at += 16 + length
    return found
