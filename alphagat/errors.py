"""Errors that a user sees as one line, and the exit statuses of commands."""

BROKEN = 1
USER_ERROR = 2
REQUEUE = 75  # EX_TEMPFAIL of sysexits.h: a scheduler may start the same command again
INTERRUPTED = 130  # 128 + SIGINT, the convention of shells


class UserError(ValueError):
    """Reports a mistake in the user's input. The message names field or file, value and fix; commands exit with 2."""


class ServiceError(Exception):
    """Reports that a part of a server has failed, which only a new start repairs. Commands exit with 1."""


class AuditError(Exception):
    """Reports that self-play disagrees with the rules: a software or hardware fault. Commands exit with 1."""
