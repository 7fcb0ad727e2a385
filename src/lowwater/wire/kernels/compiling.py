"""How kernels are compiled, and the few things they do that Python has no words for."""

# mypy: disable-error-code="no-untyped-call, call-arg"

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba
import numpy.ma  # noqa: F401  (numba looks for masked arrays in its first call: not while somebody waits for rows)
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

F = TypeVar("F", bound=Callable[..., Any])

I8, I32, I64, U8 = types.int8[::1], types.int32[::1], types.int64[::1], types.uint8[::1]
TABLE = types.int64[:, ::1]

_njit: Any = numba.njit  # its types do not know all of its options


def compiled(signature: Any) -> Callable[[F], F]:
    """Compile for exactly this signature, so that no other array kind compiles anew in the middle of a read."""

    def decorate(function: F) -> F:
        cache = is_cache_writable()
        kernel: F = _njit(signature, nogil=True, boundscheck=False, no_cfunc_wrapper=True, cache=cache)(function)
        return kernel

    return decorate


def inner(function: F) -> F:
    """For kernels alone. To build what Python or C would need to call it takes a fourth of the time to compile."""
    return _inner(function)


def inlined(function: F) -> F:
    """The same, and put in wherever it is called."""
    return _inner(function, forceinline=True)


def _inner(function: F, **options: bool) -> F:
    kernel: F = _njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True, **options)(function)
    return kernel


def is_cache_writable() -> bool:
    """Without a place for its cache numba refuses to compile at all; then each process compiles for itself."""
    try:
        numba.njit(cache=True)(is_cache_writable)
    except RuntimeError:
        return False
    return True


def _loads(result: Any, bits: int) -> Any:
    """An intrinsic that reads a number of this many bits at `address`, in the machine's own byte order."""

    @intrinsic  # type: ignore[misc, unused-ignore]
    def load(typing_context: Any, address: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            pointer = builder.inttoptr(arguments[0], ir.IntType(bits).as_pointer())
            return builder.load(pointer, align=1)

        return result(types.int64), build

    return load


byte_at = _loads(types.uint8, 8)
int_at = _loads(types.int32, 32)
long_at = _loads(types.int64, 64)


def _stores(kind: Any) -> Any:
    """An intrinsic that writes a number of this kind at `address`, in the machine's own byte order."""

    @intrinsic  # type: ignore[misc, unused-ignore]
    def store(typing_context: Any, address: Any, value: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            pointer = builder.inttoptr(arguments[0], ir.IntType(kind.bitwidth).as_pointer())
            builder.store(arguments[1], pointer, align=1)
            return context.get_dummy_value()

        return types.void(types.int64, kind), build

    return store


put_byte = _stores(types.uint8)
put_short = _stores(types.uint16)


@intrinsic
def bit_length(typing_context: Any, value: Any) -> Any:
    """Bits of a number without its leading zeros; 0 has none."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        zeros = builder.ctlz(arguments[0], ir.Constant(ir.IntType(1), 0))
        return builder.sub(ir.Constant(ir.IntType(64), 64), zeros)

    return types.int64(types.uint64), build


@intrinsic
def copy_bytes(typing_context: Any, target: Any, source: Any, size: Any) -> Any:
    """memcpy: the compiler's own copying loops are several times slower."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        bytes_type = ir.IntType(8).as_pointer()
        to, come, count = arguments
        cgutils.raw_memcpy(builder, builder.inttoptr(to, bytes_type), builder.inttoptr(come, bytes_type), count, 1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), build


@intrinsic
def prefetch(typing_context: Any, address: Any) -> Any:
    """Bring a cache line near: it will be read soon."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())
        i32 = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [ir.IntType(8).as_pointer(), i32, i32, i32])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        builder.call(function, [pointer, ir.Constant(i32, 0), ir.Constant(i32, 3), ir.Constant(i32, 1)])
        return context.get_dummy_value()

    return types.void(types.int64), build


@inner
def read_varint(at: int, end: int) -> tuple[int, int]:
    """A zigzag varint before `end`, and the place after it; place -1 when there is none."""
    result = numba.uint64(0)
    shift = numba.uint64(0)
    while at < end and shift < 70:
        byte = numba.uint64(byte_at(at))
        at += 1
        result |= (byte & numba.uint64(0x7F)) << shift
        if byte < 0x80:
            return numba.int64(result >> numba.uint64(1)) ^ -numba.int64(result & numba.uint64(1)), at
        shift += numba.uint64(7)
    return 0, -1
