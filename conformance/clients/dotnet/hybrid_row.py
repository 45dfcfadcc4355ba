"""HybridRow as the .NET SDK writes and reads it in batches, made from the format's own documents, apart from the server.

Only what `ItemBatchOperation` writes and `TransactionalBatchOperationResult` reads. Where the SDK gives up on an answer,
`Malformed` is raised.
"""

import struct
import zlib

VERSION = 0x81
SEGMENT, RECORD, OPERATION, RESULT = 2147473648, 2147473649, 2145473648, 2145473649
CREATE, PATCH, READ, DELETE, REPLACE, UPSERT = 0, 1, 2, 4, 5, 20
DOCUMENT = 2
BOOL_TRUE, UINT32, FLOAT64, UTF8 = 3, 11, 16, 20


class Malformed(Exception):
    """The error that the SDK raises if it cannot read the server's response."""


def header(schema):
    """Returns the beginning of every row."""
    return struct.pack("<Bi", VERSION, schema)


def seven_bit(number):
    """Returns a number as seven bits per byte, low ones first."""
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(out) + bytes([number])


def sized(value):
    """Returns a variable column."""
    return seven_bit(len(value)) + value


def operation(kind, key=None, id=None, body=None, indexing=None, minimal=False, if_match=None, if_none_match=None):
    """Returns the row of one operation; sparse fields in the order in which the SDK writes them."""
    columns = [(2, key and key.encode()), (4, id and id.encode()), (6, body)]
    presence = 0b11 | sum(1 << bit for bit, value in columns if value is not None)
    row = header(OPERATION) + struct.pack("<Bii", presence, kind, DOCUMENT)
    row += b"".join(sized(value) for _, value in columns if value is not None)
    if indexing is not None:
        row += bytes([UTF8, 8]) + sized(indexing.encode())
    if minimal:
        row += bytes([BOOL_TRUE, 12])
    if if_match is not None:
        row += bytes([UTF8, 9]) + sized(if_match.encode())
    elif if_none_match is not None:
        row += bytes([UTF8, 10]) + sized(if_none_match.encode())
    return row


def stream(rows):
    """Returns rows as a RecordIO stream."""
    out = header(SEGMENT) + struct.pack("<Bi", 1, 10)
    for row in rows:
        out += header(RECORD) + struct.pack("<iI", len(row), zlib.crc32(row)) + row
    return out


def results(body):
    """Reads a stream of results; each is a dict of its members."""
    at = expect(body, 0, SEGMENT)
    (_, length) = unpack("<Bi", body, at)
    at = length
    found = []
    while at < len(body):
        at = expect(body, at, RECORD)
        length, checksum = unpack("<iI", body, at)
        row = body[at + 8 : at + 8 + length]
        if len(row) != length or zlib.crc32(row) != checksum:
            raise Malformed(f"record at {at}: wrong length or checksum")
        found.append(result(row))
        at += 8 + length
    return found


def result(row):
    """Reads one result."""
    at = expect(row, 0, RESULT)
    presence, status, sub_status = unpack("<Bii", row, at)
    at += 9
    members = {}
    if presence & 1:
        members["status"] = status
    if presence & 2:
        members["sub_status"] = sub_status
    for bit, name in ((2, "etag"), (3, "body")):
        if presence & 1 << bit:
            length, at = read_seven_bit(row, at)
            members[name], at = row[at : at + length], at + length
    while at < len(row):
        code, (column, at) = row[at], read_seven_bit(row, at + 1)
        if (code, column) == (UINT32, 5):
            (members["retry_after_ms"],), at = unpack("<I", row, at), at + 4
        elif (code, column) == (FLOAT64, 6):
            (members["charge"],), at = unpack("<d", row, at), at + 8
        else:
            raise Malformed(f"sparse field of type {code} in column {column}")
    if at != len(row) or not members.get("status"):
        raise Malformed(f"a result without a status, or longer than its row: {row.hex()}")
    return members


def expect(data, at, schema):
    """Checks a row's beginning; returns where its columns begin."""
    version, found = unpack("<Bi", data, at)
    if (version, found) != (VERSION, schema):
        raise Malformed(f"expected schema {schema} at {at}, got version {version} schema {found}")
    return at + 5


def read_seven_bit(data, at):
    """Reads a number of seven bits a byte; returns it and where it ends."""
    number = shift = 0
    while at < len(data):
        number |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return number, at
    raise Malformed("cut short")


def unpack(form, data, at):
    """As `struct.unpack_from`, with our error."""
    try:
        return struct.unpack_from(form, data, at)
    except struct.error as error:
        raise Malformed(str(error)) from error
