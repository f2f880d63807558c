"""Read pickles of arrays, sparse matrices, lists and dictionaries; nothing that a pickle names is called."""

from collections.abc import Callable
from typing import Any

import numpy as np

from beltrami import file_limits as limits
from beltrami.data.pickled_array import NAMES, ROWS, Name, PickledArray, PickledDtype, SparseRows, call, text_of
from beltrami.errors import DataError


def read_pickle(content: bytes) -> Any:
    """Return the value of a pickle of protocol 2 to 5: an array, ``SparseRows``, or a list or a dictionary of whole
    numbers, texts and lists. Arrays are not writable. Anything else is a :class:`DataError`."""
    if len(content) > limits.PICKLE_BYTES:
        raise DataError(f"it has {len(content)} bytes, and at most {limits.PICKLE_BYTES} are read")
    try:
        value = _Reader(content).read()
    except (IndexError, KeyError, TypeError, ValueError) as error:
        raise DataError(f"it is no complete pickle ({type(error).__name__}: {error})") from error
    if not isinstance(value, (np.ndarray, SparseRows, list, dict)):
        raise DataError("it holds neither an array nor a list nor a dictionary")
    return value


class _Reader:
    """A loop over the opcodes of a pickle, with a stack, the places of marks in it, and values by number (``memo``)."""

    def __init__(self, content: bytes) -> None:
        self.content, self.at = content, 0
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}
        self.made = 0  # bytes of texts that calls made; a pickle may name one text many times
        self.pending = 0  # arrays and matrices without content

    def read(self) -> Any:
        content, stack, marks, memo = self.content, self.stack, self.marks, self.memo
        for _ in range(limits.PICKLE_OPCODES):
            code, at = content[self.at], self.at + 1
            self.at = at
            if code == 0x4D:  # BININT2; this and the next five are frequent in lists of integers
                stack.append(content[at] | content[at + 1] << 8)
                self.at = at + 2
            elif code == 0x28:  # MARK
                marks.append(len(stack))
            elif code == 0x5D:  # EMPTY_LIST
                stack.append([])
            elif code == 0x72:  # LONG_BINPUT
                memo[self.number(4)] = stack[-1]
            elif code == 0x65:  # APPENDS
                items = self.marked()
                _list(stack[-1]).extend(items)
            elif code == 0x61:  # APPEND
                item = stack.pop()
                _list(stack[-1]).append(item)
            elif code == 0x2E:  # STOP
                if self.pending:
                    raise DataError("it has an array without content")
                return stack.pop()
            elif code in OPCODES:
                OPCODES[code](self)
            else:
                raise DataError(f"it has the opcode {code:#x}, which no array, list or dictionary needs")
        raise DataError(f"it has more than {limits.PICKLE_OPCODES} opcodes")

    def take(self, count: int) -> bytes:
        """Return the next bytes."""
        found = self.content[self.at : self.at + count]
        if len(found) < count:
            raise DataError(f"it ends within a value of {count} bytes")
        self.at += count
        return found

    def number(self, count: int, *, signed: bool = False) -> int:
        return int.from_bytes(self.take(count), "little", signed=signed)

    def line(self) -> str:
        end = self.content.index(b"\n", self.at)
        found = self.content[self.at : end].decode()
        self.at = end + 1
        return found

    def marked(self) -> list[Any]:
        """Remove the last mark, and the values above it, which are returned."""
        start = self.marks.pop()
        items = self.stack[start:]
        del self.stack[start:]
        return items

    def last(self, count: int) -> list[Any]:
        """Remove the last values, which are returned."""
        if len(self.stack) < count:
            raise IndexError("the stack is empty")
        self.marks.append(len(self.stack) - count)
        return self.marked()

    def push(self, value: Any) -> None:
        self.stack.append(value)

    def name(self, module: str, name: str) -> None:
        if (module, name) not in NAMES:
            raise DataError(f"it needs {module}.{name}, which is not allowed")
        self.push(Name(NAMES[module, name]))

    def get(self, key: int) -> None:
        value = self.memo[key]
        self.push(value.content if type(value) is PickledArray and value.content is not None else value)

    def put(self, key: int) -> None:
        self.memo[key] = self.stack[-1]

    def set_items(self, items: list[Any]) -> None:
        target = self.stack[-1]
        if type(target) is not dict or len(items) % 2:
            raise DataError("it sets items of something else than a dictionary")
        for key, value in zip(items[::2], items[1::2], strict=True):
            target[key if type(key) is int else text_of(key)] = value

    def new(self) -> None:
        name, arguments = self.last(2)
        if type(name) is not Name or name.meaning != ROWS or arguments != ():
            raise DataError("it creates an object other than a sparse matrix")
        self.pending += 1
        self.push(SparseRows())

    def call(self) -> None:
        value = call(*self.last(2))
        self.pending += type(value) is PickledArray
        self.made += len(value) if type(value) is bytes else 0
        if self.made > len(self.content):
            raise DataError("it makes more bytes of texts than it has")
        self.push(value)

    def build(self) -> None:
        target, state = self.last(2)
        if type(target) is PickledDtype and state[2:5] == (None, None, None):
            target.order = text_of(state[1])
        elif type(target) in (PickledArray, SparseRows) and target.content is None:
            target.build(state)
            self.pending -= 1
        else:
            raise DataError("it sets the state of something else than an array or a sparse matrix")
        self.push(target.content if type(target) is PickledArray else target)


def _list(value: Any) -> list[Any]:
    if type(value) is not list:
        raise DataError("it appends to something else than a list")
    return value


def _bytes(width: int) -> Callable[[_Reader], None]:
    return lambda reader: reader.push(reader.take(reader.number(width)))


def _unicode(width: int) -> Callable[[_Reader], None]:
    return lambda reader: reader.push(reader.take(reader.number(width)).decode())


def _tuple(count: int) -> Callable[[_Reader], None]:
    return lambda reader: reader.push(tuple(reader.last(count)))


def _constant(value: Any) -> Callable[[_Reader], None]:
    return lambda reader: reader.push(value)


OPCODES: dict[int, Callable[[_Reader], Any]] = {
    0x80: lambda reader: reader.take(1),  # PROTO
    0x95: lambda reader: reader.take(8),  # FRAME
    0x4E: _constant(None), 0x88: _constant(True), 0x89: _constant(False), 0x29: _constant(()),  # NONE ... EMPTY_TUPLE
    0x4B: lambda reader: reader.push(reader.number(1)),  # BININT1
    0x4A: lambda reader: reader.push(reader.number(4, signed=True)),  # BININT
    0x8A: lambda reader: reader.push(reader.number(reader.number(1), signed=True)),  # LONG1
    0x55: _bytes(1), 0x43: _bytes(1),  # SHORT_BINSTRING, SHORT_BINBYTES
    0x54: _bytes(4), 0x42: _bytes(4),  # BINSTRING, BINBYTES
    0x8E: _bytes(8), 0x96: _bytes(8),  # BINBYTES8, BYTEARRAY8
    0x8C: _unicode(1), 0x58: _unicode(4), 0x8D: _unicode(8),  # SHORT_BINUNICODE, BINUNICODE, BINUNICODE8
    0x71: lambda reader: reader.put(reader.number(1)),  # BINPUT
    0x94: lambda reader: reader.put(len(reader.memo)),  # MEMOIZE
    0x68: lambda reader: reader.get(reader.number(1)),  # BINGET
    0x6A: lambda reader: reader.get(reader.number(4)),  # LONG_BINGET
    0x7D: lambda reader: reader.push({}),  # EMPTY_DICT
    0x73: lambda reader: reader.set_items(reader.last(2)),  # SETITEM
    0x75: lambda reader: reader.set_items(reader.marked()),  # SETITEMS
    0x85: _tuple(1), 0x86: _tuple(2), 0x87: _tuple(3),  # TUPLE1, TUPLE2, TUPLE3
    0x74: lambda reader: reader.push(tuple(reader.marked())),  # TUPLE
    0x63: lambda reader: reader.name(reader.line(), reader.line()),  # GLOBAL
    0x93: lambda reader: reader.name(*map(text_of, reader.last(2))),  # STACK_GLOBAL
    0x81: _Reader.new,  # NEWOBJ
    0x52: _Reader.call,  # REDUCE
    0x62: _Reader.build,  # BUILD
}  # fmt: skip
"""What each opcode does, by its byte; the frequent ones are in the loop itself."""
