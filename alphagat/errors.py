"""The error that a user sees as one line."""


class UserError(ValueError):
    """A mistake in what the user gave. The message names field or file, value and fix; commands exit with 2."""
