"""Errors that a user sees as one line, and the exit statuses of commands."""

import errno
import os
from collections.abc import Iterator

BROKEN = 1
USER_ERROR = 2
REQUEUE = 75  # EX_TEMPFAIL of sysexits.h: a scheduler may start the same command again
INTERRUPTED = 130  # 128 + SIGINT, the convention of shells


class UserError(ValueError):
    """Reports a mistake in the user's input. The message names field or file, value and fix; commands exit with 2."""


class JointError(UserError):
    """Ends all processes of a run because of a mistake that at least one of them has found.

    Attributes:
      is_reported_here: whether this process is the one that reports it to the user.
    """

    def __init__(self, message: str, is_reported_here: bool):
        super().__init__(message)
        self.is_reported_here = is_reported_here


class ServiceError(Exception):
    """Reports that a part of a server has failed, which only a new start repairs. Commands exit with 1."""


class AuditError(Exception):
    """Reports that self-play disagrees with the rules: a software or hardware fault. Commands exit with 1."""


class DiskError(Exception):
    """Reports that the files of a run cannot be written, and how to continue. Commands exit with 1."""


def first_line(error: BaseException) -> str:
    """Returns the first line of the error's text, of at most 200 characters."""
    return str(error).strip().split("\n")[0][:200]


def internal_error(error: BaseException) -> str:
    """Returns one line about an unexpected error, the answer to the command that raised it."""
    return f"internal error: {type(error).__name__}: {first_line(error)}"


_FREE = "free some"
_FIXES = {
    errno.ENOSPC: _FREE,
    errno.EDQUOT: _FREE,
    errno.EROFS: "make it writable",
    errno.EIO: "check the disk",
    errno.EFBIG: "raise the limit of file sizes (ulimit -f)",
}


def disk_failure(error: BaseException) -> str | None:
    """Returns the failure of a disk that caused `error`, with its fix, such as `no space left on device; free some`.

    None if there is another cause. Libraries raise it from background threads and from C++, so it may be wrapped
    several times, or appear only in the text of an error.
    """
    for each in causes(error):
        for number, fix in _FIXES.items():
            words = os.strerror(number)
            if words in str(each) or (isinstance(each, OSError) and each.errno == number):
                return f"{words[0].lower()}{words[1:]}; {fix}"
    return None


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yields an error, its causes and their causes, each once."""
    pending, seen = [error], set[int]()
    while pending:
        each = pending.pop(0)
        if id(each) not in seen:
            seen.add(id(each))
            yield each
            inside = each.exceptions if isinstance(each, BaseExceptionGroup) else ()
            pending += [cause for cause in (each.__cause__, each.__context__, *inside) if cause is not None]
