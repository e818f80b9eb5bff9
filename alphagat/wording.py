"""The wording of messages."""


def counted(number: int, noun: str) -> str:
    """Returns a number and its noun, such as `1 device`, `8 devices` or `1,024 other processes`."""
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun}{'es' if noun.endswith(('s', 'ch')) else 's'}"
