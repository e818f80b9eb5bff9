"""Small helpers that draw boards as SVG text, readable on light and dark pages."""


def column_letters(columns: int) -> tuple[str, ...]:
    """Returns the names of up to 26 columns, from a."""
    return tuple("abcdefghijklmnopqrstuvwxyz"[:columns])
