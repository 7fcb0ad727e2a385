"""Files of client settings as kcat reads them with -F, and those that Java programs have."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from lowwater.errors import ConfigError

OURS = ("LOWWATER_CONFIG", "~/.config/lowwater.conf")
KCATS = ("KCAT_CONFIG", "~/.config/kcat.conf")
"""Where settings are when no file is named: an environment variable that names one, and a place in the home."""

_ESCAPED = re.compile(r"\\([:=])")
_JAAS = re.compile(r"""\b(username|password)\s*=\s*(?:"((?:\\.|[^"\\])*)"|'([^']*)'|([^\s;"']+))""")
# What Java programs need for themselves, beside what says how to connect.
_JAVA_ONLY = frozenset({"key.serializer", "value.serializer", "key.deserializer", "value.deserializer"})


def read_settings_file(path: str) -> dict[str, str]:
    """ConfigError names the file, and the line that cannot be read."""
    try:
        text = Path(path).expanduser().read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot read the settings in {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"cannot read the settings in {path}: it is not a text file (UTF-8)") from None
    settings: dict[str, str] = {}
    for number, line in _lines(text):
        name, equals, value = line.partition("=")
        if not equals or not name.strip():
            # The line itself may hold a password.
            raise ConfigError(f"{path}:{number}: expected name=value")
        settings.update(_taken(name.strip(), value.strip()))
    return settings


def usual_file(places: Sequence[str] = OURS) -> str | None:
    """The file that is read without being asked for: a variable's even when it is missing, which is an error then."""
    for place in places:
        if place.startswith("~"):
            path = os.path.expanduser(place)
            if os.path.isfile(path):
                return path
        elif named := os.environ.get(place):
            return named
    return None


def _lines(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), start=1):
        line = line.strip()
        if line and not line.startswith("#"):
            yield number, _ESCAPED.sub(r"\1", line)


def _taken(name: str, value: str) -> dict[str, str]:
    if name in _JAVA_ONLY:
        return {}
    if name == "sasl.jaas.config":
        return {f"sasl.{key}": _unquoted(*forms) for key, *forms in _JAAS.findall(value)}
    return {name: value}


def _unquoted(double: str, single: str, bare: str) -> str:
    return re.sub(r"\\(.)", r"\1", double) or single or bare
