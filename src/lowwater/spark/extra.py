"""Whether the packages are there that Spark and its workers need."""

from __future__ import annotations

from lowwater.client.loading import MissingExtraError, require_extra

ADVICE = "pip install 'lowwater[spark]', on the driver and on every executor"
OLDEST = (4, 2)
"""Since then streams of Python sources have limits, and end when they have read what is there."""
_EXTRA = frozenset({"pyspark", "py4j", "pyarrow", "numpy", "numba", "llvmlite", "pandas"})


def require_spark_extra() -> None:
    """MissingExtraError says what to install."""
    import pyspark  # whoever asks has it

    if _release(pyspark.__version__) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise MissingExtraError(f"this is pyspark {pyspark.__version__}, and {oldest} is needed", advice=ADVICE)
    try:
        require_extra()
    except MissingExtraError as error:
        raise MissingExtraError(error.what, advice=ADVICE) from None


def _release(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2] if part.isdigit())


def missing(error: ModuleNotFoundError) -> ImportError:
    """What to raise for a module that was not found: of the extra, or else the error itself."""
    package = (error.name or "").partition(".")[0]
    if package not in _EXTRA:
        return error
    return MissingExtraError(f"the package {package} is not installed", advice=ADVICE)
