"""Loading of what turns records into columns, while the client is still finding its brokers.

numba, pyarrow and the kernels take some tenths of a second to load, and seconds when kernels are compiled for the first
time. A reader or producer begins that in a thread when it is created and needs it when its first answer is there.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import sys
import threading
from types import ModuleType

from lowwater.client.errors import ClientError

READING = "lowwater.client.columns"
WRITING = "lowwater.client.producing.tables"
_EXTRA = ("numba", "numpy", "pyarrow", "llvmlite")


class MissingExtraError(ClientError, ImportError):
    """A package is missing that the base install does not bring."""


def load_behind(*names: str) -> None:
    """Begin to load these modules and return at once. What fails says so when the module is needed."""
    missing = [name for name in names if name not in sys.modules]
    if missing:
        # Not a daemon: the compiler must not be cut off in the middle when the interpreter ends.
        threading.Thread(target=_load_quietly, args=(missing,), name="lowwater-kernels").start()


def load(name: str) -> ModuleType:
    """The module, as soon as it is loaded, by a thread or here. MissingExtraError says what to install."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in _EXTRA:
            raise
        raise _missing(package) from error


def require_extra() -> None:
    """MissingExtraError when a package is missing; it takes no time, since nothing is loaded."""
    for package in _EXTRA:
        if package not in sys.modules and importlib.util.find_spec(package) is None:
            raise _missing(package)


def _missing(package: str) -> MissingExtraError:
    return MissingExtraError(f"the package {package} is not installed", advice="pip install 'lowwater[reader]'")


def _load_quietly(names: list[str]) -> None:
    for name in names:
        with contextlib.suppress(Exception):
            importlib.import_module(name)
