"""The errors that a user sees as one line."""


class UserError(ValueError):
    """A mistake in what the user gave. The message names field or file, value and fix; commands exit with 2."""


class AuditError(Exception):
    """What self-play gave is not what the rules give: the software or the machine is wrong; commands exit with 1."""
