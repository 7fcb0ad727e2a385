"""Levels of loggers as settings of the broker, under Kafka's names of levels. They last until the broker stops."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from lowwater.broker.config_changes import Operation
from lowwater.errors import ApiError, ErrorCode

ROOT = "root"
OURS = "lowwater"
LEVELS = {
    "TRACE": logging.DEBUG,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}
NAMES = {level: name for name, level in LEVELS.items()}


def levels() -> dict[str, str]:
    """The level in force of the root logger and of every logger of this package."""
    names = sorted(name for name in logging.root.manager.loggerDict if name.split(".")[0] == OURS)
    found = {ROOT: logging.root, **{name: logging.getLogger(name) for name in names}}
    return {name: _level_name(logger.getEffectiveLevel()) for name, logger in found.items()}


def _level_name(level: int) -> str:
    return NAMES.get(level, "INFO" if level > logging.NOTSET else "TRACE")


def alter(changes: Iterable[tuple[str, int, str | None]], *, validate_only: bool) -> None:
    """Apply (logger, operation, level), all of them or none."""
    wanted = [_checked(*change) for change in changes]
    if validate_only:
        return
    for logger, level in wanted:
        logger.setLevel(level)


def _checked(name: str, operation: int, level: str | None) -> tuple[logging.Logger, int]:
    if name not in levels():
        raise ApiError(ErrorCode.INVALID_CONFIG, f"there is no logger {name!r}")
    logger = logging.root if name == ROOT else logging.getLogger(name)
    if operation == Operation.DELETE:
        if name == ROOT:
            raise ApiError(ErrorCode.INVALID_REQUEST, "the root logger always has a level")
        return logger, logging.NOTSET
    if operation != Operation.SET:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"operation {operation} does not work on levels")
    if level not in LEVELS:
        raise ApiError(ErrorCode.INVALID_CONFIG, f"level {level!r} of {name}; allowed: {', '.join(LEVELS)}")
    return logger, LEVELS[level]
