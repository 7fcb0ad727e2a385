"""At which setting of the file it is told that options of a source or a sink cannot be taken.

The clients' settings come from several tables, and an error of theirs may name others than the one to change. So the
options are tried without each of them: the one is at fault without which the error is gone, or at least another one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

from lowwater.spark.option_table import OptionError
from lowwater.spark.pipeline.model import Model, Sink, Source
from lowwater.spark.pipeline.problems import Report
from lowwater.spark.pipeline.source_options import KAFKA, KEY_OF_OPTION
from lowwater.spark.pipeline.toml_places import Path

Parse: TypeAlias = Callable[[Mapping[str, str]], object]
Origins: TypeAlias = Mapping[str, tuple[Path, str]]
"""By options in small letters: the table of others' settings and the name in it; a key of ours, and no name."""

# Without any of these every source is refused, whatever else is wrong.
_ALWAYS_NEEDED = ("kafka.bootstrap.servers", "subscribe", "subscribepattern", "assign")
_SAID_AT_THE_TOP = {"cut": "cut", "idletimeout": "idle_timeout"}
_KEY_OF_SINK = {"topic": "topic", "exactlyonce": "exactly_once", "sinkid": "sink_id"}
_CLIENTS = "option kafka.*: "
_NO_SETTING = f"{_CLIENTS}unknown setting"
# With a login that is whole, what goes with one is known.
_LOGIN = {
    "kafka.security.protocol": "SASL_PLAINTEXT",
    "kafka.sasl.mechanism": "PLAIN",
    "kafka.sasl.username": "nobody",
    "kafka.sasl.password": "nothing",
}
_WORD = re.compile(r"[A-Za-z0-9_.-]+")


def origins_of_source(model: Model, source: Source) -> Origins:
    path: Path = ("source", source.name)
    keys = {option: ((*path, key), "") for option, key in KEY_OF_OPTION.items()}
    top: dict[str, tuple[Path, str]] = {option: ((key,), "") for option, key in _SAID_AT_THE_TOP.items()}
    return {**keys, **top, **_settings(model, source, path)}


def origins_of_sink(model: Model, sink: Sink) -> Origins:
    path: Path = ("sink", sink.name)
    keys = {option: ((*path, key), "") for option, key in _KEY_OF_SINK.items()}
    return {**keys, **_settings(model, sink, path)}


def origins_of_dead_letters(model: Model, source: Source) -> Origins:
    path: Path = ("source", source.name)
    return {"topic": ((*path, "on_bad_row", "dead_letter"), ""), **_settings(model, source, path)}


def tell_refusal(options: Mapping[str, str], parse: Parse, origins: Origins, otherwise: Path, report: Report) -> None:
    """Once for each setting, however many parts of the pipeline share it; `otherwise` when none is at fault."""
    what = _refusal(options, parse)
    if what is None:
        return
    found = _unknown(options, parse) or {_at_fault(options, parse, what): what}
    for option, told in found.items():
        table, name = _origin(option, told, origins, otherwise)
        path = report.path_of(table, name) if name else table
        if not report.has_told(path):
            report.key(path, told.removeprefix(_CLIENTS))


def _settings(model: Model, part: Source | Sink, path: Path) -> dict[str, tuple[Path, str]]:
    """Later ones win, as they do among the options."""
    tables: tuple[tuple[Path, Mapping[str, str]], ...] = (("kafka",), model.kafka), ((*path, "kafka"), part.kafka)
    found = {f"{KAFKA}{name}".lower(): (table, name) for table, names in tables for name in names}
    return found | {name.lower(): ((*path, "options"), name) for name in part.options}


def _refusal(options: Mapping[str, str], parse: Parse) -> str | None:
    try:
        parse(options)
    except OptionError as error:
        return str(error)
    return None


def _unknown(options: Mapping[str, str], parse: Parse) -> dict[str | None, str]:
    """Settings of the clients that nobody knows. That one is missing which was meant must not be told."""
    sound = {name: value for name, value in options.items() if name.lower() in _ALWAYS_NEEDED} | _LOGIN
    tried = {name: _refusal({**sound, name: options[name]}, parse) or "" for name in options if _is_kafka(name)}
    return {name: what for name, what in tried.items() if what.startswith(_NO_SETTING)}


def _is_kafka(name: str) -> bool:
    return name.lower().startswith(KAFKA)


def _at_fault(options: Mapping[str, str], parse: Parse, what: str) -> str | None:
    words = {word.strip(".").lower() for word in _WORD.findall(what)}
    guilt = {name: _guilt(name, options, parse, what, words) for name in options}
    worst = max(options, key=lambda name: guilt[name])
    return worst if any(guilt[worst]) else None


def _guilt(name: str, options: Mapping[str, str], parse: Parse, what: str, words: set[str]) -> tuple[bool, ...]:
    """The graver the sooner: the error goes with it, changes with it, names it, shows what it is set to."""
    names = {name.lower(), name.lower().removeprefix(KAFKA)}
    is_named, is_shown = bool(names & words), options[name].lower() in words
    if name.lower() in _ALWAYS_NEEDED:
        return False, False, is_named, False
    then = _refusal({other: value for other, value in options.items() if other != name}, parse)
    return then is None, then != what, is_named, is_shown


def _origin(option: str | None, what: str, origins: Origins, otherwise: Path) -> tuple[Path, str]:
    if option is not None and option.lower() in origins:
        return origins[option.lower()]
    if option is not None or KAFKA not in what.lower():
        return otherwise, ""
    tables = (table for name, (table, _) in origins.items() if name.startswith(KAFKA))
    return max(tables, key=len, default=otherwise), ""
