"""Python source written line by line, and compiled with the constants it refers to."""

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Source:
    """Lines of one function under construction. Names made here are unique within it."""

    def __init__(self, names: dict[str, Any]) -> None:
        self.names = names
        self._lines: list[str] = []
        self._indent = ""
        self._count = 0

    def line(self, text: str) -> None:
        self._lines.append(self._indent + text)

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        self.line(header)
        outer = self._indent
        self._indent += " "
        yield
        self._indent = outer

    def fresh(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    def constant(self, prefix: str, value: Any) -> str:
        name = self.fresh(prefix)
        self.names[name] = value
        return name

    def packer(self, codes: str) -> str:
        """The name of a function that packs these struct codes, big-endian."""
        name = "pack_" + codes.replace("?", "o")
        if name not in self.names:
            self.names[name] = struct.Struct(">" + codes).pack
        return name

    def unpacker(self, codes: str) -> str:
        """The name of a function that unpacks these struct codes from (buffer, position)."""
        name = "unpack_" + codes.replace("?", "o")
        if name not in self.names:
            self.names[name] = struct.Struct(">" + codes).unpack_from
        return name

    def compiled(self, name: str, origin: str) -> Any:
        """Compile what was written and return the function `name`. Tracebacks show `origin`."""
        exec(compile(self.text(), f"<{origin}>", "exec"), self.names)
        return self.names[name]

    def text(self) -> str:
        return "\n".join(self._lines) + "\n"
