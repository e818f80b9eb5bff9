"""Draws the sharding of an array."""

import jax

from alphagat.games import svg

# Of devices 0, 1, ...; dark enough for white text.
DEVICE_COLOURS = ("#1c7ed6", "#e8590c", "#2b8a3e", "#ae3ec9", "#c92a2a", "#0b7285", "#5f3dc4", "#846358")
SHARED = "#868e96"  # of a replicated array
WIDTH, HEIGHT, GAP = 240.0, 144.0, 3.0  # size of the drawing, and gap between shards


def draw_placement(array: jax.Array) -> str:
    """Returns an SVG document: a rectangle cut into the shards of the array, labeled with their devices.

    It shows two axes of the array, sharded axes first; the earlier axis runs downward.
    """
    parts = _parts(array)
    axes = sorted(range(array.ndim), key=lambda axis: (len({part[axis] for part in parts}) == 1, axis))[:2]
    down, right = (*sorted(axes), None, None)[:2]
    shapes = []
    for part, devices in parts.items():
        top, bottom = _extent(array, part, down, HEIGHT)
        left, end = _extent(array, part, right, WIDTH)
        colour = SHARED if len(parts) == 1 and len(devices) > 1 else DEVICE_COLOURS[devices[0] % len(DEVICE_COLOURS)]
        shapes.append(svg.rectangle(left, top, end - left - GAP, bottom - top - GAP, 3, colour))
        size = min(15.0, 0.85 * (bottom - top - GAP), 1.5 * (end - left - GAP) / len(_names(devices)))
        shapes.append(svg.bold_label((left + end - GAP) / 2, (top + bottom - GAP) / 2, _names(devices), size))
    return svg.document(WIDTH, HEIGHT, shapes)


def _parts(array: jax.Array) -> dict[tuple[tuple[int, int], ...], list[int]]:
    """Returns the devices of each shard; a shard is given by its index range per axis."""
    parts: dict[tuple[tuple[int, int], ...], list[int]] = {}
    for device, index in array.sharding.devices_indices_map(array.shape).items():
        ranges = tuple(each.indices(size)[:2] for each, size in zip(index or (), array.shape))
        parts.setdefault(ranges, []).append(device.id)
    return {part: sorted(parts[part]) for part in sorted(parts)}


def _extent(array: jax.Array, part: tuple, axis: int | None, pixels: float) -> tuple[float, float]:
    if axis is None:
        return 0.0, pixels
    return tuple(pixels * end / array.shape[axis] for end in part[axis])


def _names(devices: list[int]) -> str:
    """Formats device numbers: `0 2 4`, or `0-7` for three or more in sequence."""
    if len(devices) > 2 and devices == list(range(devices[0], devices[-1] + 1)):
        return f"{devices[0]}-{devices[-1]}"
    return " ".join(map(str, devices))
