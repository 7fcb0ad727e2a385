"""Which values are secret, and texts without them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from urllib.parse import unquote

HIDDEN = "[hidden]"
# A value that is this short stands in too many texts by chance; where it is the value of a key it is hidden anyway.
SHORTEST = 4
_SECRET_NAME = re.compile(
    r"password|passwd|passphrase|secret|token|credential|jaas|key[._]?pem|(access|account|api|private)[._-]?key"
    r"|ssl\.key$|keystore\.key|oauthbearer\.config|user[._]?info",
    re.IGNORECASE,
)
# Names of files and kinds, not what is in them.
_NOT_SECRET = re.compile(r"\.(location|class|type|ms|url|provider)$", re.IGNORECASE)


def is_secret(name: str) -> bool:
    """Whether a setting or a variable of that name holds something that nobody should see."""
    return _SECRET_NAME.search(name) is not None and _NOT_SECRET.search(name) is None


def secrets_of_address(address: str) -> Iterator[str]:
    """Values of such parameters in sc://host:port/;name=value;…: as they are written, and as a server is told them."""
    for parameter in address.split(";")[1:]:
        name, _, value = parameter.partition("=")
        if is_secret(name.strip()):
            yield from (value, unquote(value))


class Secrets:
    """Values that were met while a pipeline was read. Shows none of them itself."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._values = {value for value in values if value}

    def add(self, value: str) -> None:
        if value:
            self._values.add(value)

    def masked(self, text: str) -> str:
        """The same text with every secret replaced."""
        for value in sorted(self._values, key=len, reverse=True):
            if len(value) >= SHORTEST or value == text:
                text = text.replace(value, HIDDEN)
        return text

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Secrets({len(self._values)} of them)"
