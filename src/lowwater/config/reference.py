"""The table of settings as text: for `--help-config` and for docs/configuration.md."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from lowwater.config.broker_settings import BROKER_SETTINGS
from lowwater.config.group_settings import GROUP_OWN_SETTINGS
from lowwater.config.setting import Kind, Setting, value_text
from lowwater.config.topic_settings import TOPIC_SETTINGS

WIDTH = 100

INTRODUCTION = """\
# Configuration

Settings carry Kafka's names. The broker reads them from a properties file (`--config FILE`) and from the command line
(`--set name=value`, which goes first); `lowwater broker --help-config` prints those of the broker. Some can also be
altered while the broker runs, with any Kafka admin client. Settings marked *ours* do not exist in Kafka. At the start a
name that is not in the first table is refused. This page is printed by `python -m lowwater.config.reference`.
"""

TOPIC_INTRODUCTION = """\
Given when a topic is created, or altered later. Where a topic does not set one, the broker's setting decides.
"""


GROUP_INTRODUCTION = """\
Altered for one consumer group by its name, within the bounds that the broker sets (`group.consumer.min.…`, `.max.…`).
"""


def help_text() -> str:
    """Every broker setting, for a terminal."""
    return "\n".join(_entry(setting) for setting in sorted(BROKER_SETTINGS, key=lambda setting: setting.name))


def _entry(setting: Setting) -> str:
    facts = [f"{setting.kind.name.lower()}, default {default_text(setting)}"]
    if setting.check is not None:
        facts.append(f"allowed: {setting.check.allowed}")
    if setting.dynamic:
        facts.append(f"can be altered {setting.update.value}")
    lines = [setting.name, *textwrap.wrap(f"{setting.help} ({'; '.join(facts)})", WIDTH - 4)]
    return "\n    ".join(lines) + "\n"


def markdown() -> str:
    """The whole of docs/configuration.md."""
    return "\n".join(
        [
            INTRODUCTION,
            "## Broker\n",
            "| name | type | default | allowed | altered | what it does |",
            "|---|---|---|---|---|---|",
            *_rows(BROKER_SETTINGS, broker=True),
            "",
            "## Topics\n",
            TOPIC_INTRODUCTION,
            "| name | type | default | allowed | broker's setting | what it does |",
            "|---|---|---|---|---|---|",
            *_rows(TOPIC_SETTINGS, broker=False),
            "",
            "## Consumer groups\n",
            GROUP_INTRODUCTION,
            "| name | type | default | allowed | broker's setting | what it does |",
            "|---|---|---|---|---|---|",
            *_rows(GROUP_OWN_SETTINGS, broker=False),
            "",
        ]
    )


def _rows(settings: Iterable[Setting], *, broker: bool) -> Iterable[str]:
    for setting in sorted(settings, key=lambda setting: setting.name):
        cells = (
            f"`{setting.name}`" + (" *ours*" if setting.ours else ""),
            setting.kind.name.lower(),
            default_text(setting),
            allowed_text(setting),
            setting.update.value if broker else ", ".join(f"`{synonym.name}`" for synonym in setting.synonyms),
            setting.help,
        )
        yield row(cells)


def row(cells: Iterable[str]) -> str:
    """A row of a table in Markdown."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def allowed_text(setting: Setting) -> str:
    if setting.check is not None:
        return setting.check.allowed
    return "true, false" if setting.kind is Kind.BOOLEAN else "any"


def default_text(setting: Setting) -> str:
    text = value_text(setting.default)
    if text is None:
        return "not set"
    return text or "empty"


if __name__ == "__main__":
    print(markdown(), end="")
