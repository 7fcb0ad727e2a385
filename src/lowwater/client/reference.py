"""The settings of clients as docs/client-settings.md: `python -m lowwater.client.reference`."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator

from lowwater.client.data_settings import GROUP_MEMBER_SETTINGS, PRODUCING_SETTINGS, READING_SETTINGS
from lowwater.client.settings import ALIASES, CONNECTION_SETTINGS, IGNORED, REFUSED, SECURITY_SETTINGS
from lowwater.config.reference import allowed_text, default_text, row
from lowwater.config.setting import Setting

WIDTH = 120

INTRODUCTION = """\
# Settings of clients

The reader, the producer, `Admin` and the commands take these, by the names that Kafka's Java clients and librdkafka
give them: `lowwater.read("orders", config={"isolation.level": "read_uncommitted"})`, `lowwater topics list -X
security.protocol=SSL`, or a file of `name=value` lines with `-F`. A value may be text, a number or a bool. A name that
nobody knows is refused, and the nearest one is named. What a call has an option for of its own ([reader](reader.md),
[producer](producer.md), [Admin](admin.md)) is better said there. This page is printed by
`python -m lowwater.client.reference`.
"""

PARTS: tuple[tuple[str, tuple[Setting, ...], str], ...] = (
    ("Connections", CONNECTION_SETTINGS, "`allow.auto.create.topics` is true for producers unless it is set."),
    (
        "Encryption and login",
        SECURITY_SETTINGS,
        "Besides, for OAUTHBEARER, `oauth_cb`: a function that is given `sasl.oauthbearer.config` and returns "
        "`(token, when it ends in seconds since 1970)`, and if it likes the principal and a dict of extensions.",
    ),
    ("Reading", READING_SETTINGS, "For readers and `lowwater cat`. kcat's defaults hold in `lowwater cat`."),
    ("Groups", GROUP_MEMBER_SETTINGS, "For readers with a group and `lowwater cat -G`."),
    ("Producing", PRODUCING_SETTINGS, "For producers and `lowwater cat -P`."),
)

IGNORED_TEXT = "Programs that are moved over may keep these; each is told once, as a warning, and changes nothing:"
REFUSED_TEXT = "These would change how safe a connection is, so they are not passed over:"


def markdown() -> str:
    """The whole of docs/client-settings.md."""
    return "\n".join([INTRODUCTION, *_parts(), *_ignored(), *_refused()])


def _parts() -> Iterator[str]:
    for title, settings, note in PARTS:
        yield f"## {title}\n"
        yield f"{textwrap.fill(note, WIDTH)}\n"
        yield "| name | type | default | allowed | also called | what it does |"
        yield "|---|---|---|---|---|---|"
        yield from map(_row, sorted(settings, key=lambda setting: setting.name))
        yield ""


def _row(setting: Setting) -> str:
    others = (f"`{alias}`" for alias, name in sorted(ALIASES.items()) if name == setting.name)
    cells = (default_text(setting), allowed_text(setting), ", ".join(others), setting.help)
    return row((f"`{setting.name}`", setting.kind.name.lower(), *cells))


def _ignored() -> Iterable[str]:
    names = ", ".join(f"`{name}`" for name in sorted(IGNORED))
    return ["## Without meaning here\n", f"{IGNORED_TEXT}\n", textwrap.fill(names, WIDTH, break_on_hyphens=False), ""]


def _refused() -> Iterable[str]:
    rows = (row((f"`{name}`", why)) for name, why in sorted(REFUSED.items()))
    return ["## Refused\n", f"{REFUSED_TEXT}\n", "| name | instead |", "|---|---|", *rows, ""]


if __name__ == "__main__":
    print(markdown(), end="")
