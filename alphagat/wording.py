"""The wording of messages."""

from rich import filesize


def counted(number: int, noun: str) -> str:
    """Returns a number and its noun, such as `1 device`, `8 plies` or `1,024 other processes`."""
    if number == 1:
        return f"1 {noun}"
    if noun.endswith("ly"):
        return f"{number:,} {noun[:-1]}ies"
    return f"{number:,} {noun}{'es' if noun.endswith(('s', 'ch')) else 's'}"


def sized(num_bytes: float) -> str:
    """Returns a size in decimal units with one digit after the point, such as `1.2 MB`; whole bytes below 1 kB."""
    return filesize.decimal(int(num_bytes))
