"""Compares values as the Unified Test Format says: documents by the expected keys, numbers by value, `$$` operators."""

from bson import Binary, Code, DBRef, Decimal128, Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp
from collections.abc import Mapping, Sequence
from datetime import datetime

# BSON type name → the Python types that PyMongo reads it as, or takes for it.
TYPES = {
    "array": (list, tuple),
    "binData": (Binary, bytes),
    "bool": (bool,),
    "date": (datetime,),
    "decimal": (Decimal128,),
    "double": (float,),
    "int": (int,),
    "javascript": (Code,),
    "long": (Int64, int),
    "maxKey": (MaxKey,),
    "minKey": (MinKey,),
    "null": (type(None),),
    "number": (int, float, Int64, Decimal128),
    "object": (Mapping, DBRef),
    "objectId": (ObjectId,),
    "regex": (Regex,),
    "string": (str,),
    "timestamp": (Timestamp,),
}

# Stands for a value that is not there, which is not the same as null.
MISSING = object()


class Differs(AssertionError):
    """A value is not as expected; the message names its place."""


class Matcher:
    """Compares with values that may refer to entities."""

    def __init__(self, entities):
        self._entities = entities

    def match(self, expected, actual, place="result", is_root=True):
        """Raises `Differs` unless `actual` is as expected. At the root a document may have more keys than expected."""
        operator = special(expected)
        if operator:
            self._match_operator(*operator, actual, place, is_root)
        elif actual is MISSING:
            raise Differs(f"{place}: expected {expected!r}, got nothing")
        elif isinstance(expected, Mapping):
            self._match_document(expected, actual, place, is_root)
        elif isinstance(expected, list):
            self._match_list(expected, actual, place, is_root)
        elif not equal(expected, actual):
            raise Differs(f"{place}: expected {expected!r}, got {actual!r}")

    def _match_document(self, expected, actual, place, is_root):
        if not isinstance(actual, Mapping):
            raise Differs(f"{place}: expected {expected!r}, got {actual!r}")
        for key, value in expected.items():
            self.match(value, actual.get(key, MISSING), f"{place}.{key}", False)
        more = [] if is_root else [key for key in actual if key not in expected]
        if more:
            raise Differs(f"{place}: unexpected keys {more} in {actual!r}")

    def _match_list(self, expected, actual, place, is_root):
        if isinstance(actual, (str, bytes)) or not isinstance(actual, Sequence) or len(actual) != len(expected):
            raise Differs(f"{place}: expected {expected!r}, got {actual!r}")
        for index, (one, other) in enumerate(zip(expected, actual)):
            # The documents that a cursor gives are roots as well.
            self.match(one, other, f"{place}[{index}]", is_root)

    def _match_operator(self, name, argument, actual, place, is_root):
        wrong = Differs(f"{place}: expected {name} {argument!r}, got {'nothing' if actual is MISSING else repr(actual)}")
        if name == "$$exists":
            if argument == (actual is MISSING):
                raise wrong
        elif name == "$$unsetOrMatches":
            if actual is not MISSING and actual is not None:
                self.match(argument, actual, place, is_root)
        elif actual is MISSING:
            raise wrong
        elif name == "$$type":
            names = [argument] if isinstance(argument, str) else argument
            if not any(is_of_type(actual, one) for one in names):
                raise wrong
        elif name == "$$matchesEntity":
            self.match(self._entities[argument], actual, place, is_root)
        elif name == "$$matchesHexBytes":
            if bytes(actual) != bytes.fromhex(argument):
                raise wrong
        elif name == "$$sessionLsid":
            if actual != self._entities.lsid(argument):
                raise wrong
        elif name == "$$lte":
            if not actual <= argument:
                raise wrong
        else:
            raise NotImplementedError(f"operator {name}")


def special(expected):
    """Returns name and argument of a document that is an operator, such as `{"$$exists": true}`."""
    if isinstance(expected, Mapping) and len(expected) == 1:
        ((name, argument),) = expected.items()
        if name.startswith("$$"):
            return name, argument
    return None


def is_of_type(value, name):
    """Tells whether a value is of a BSON type. A bool is a number in Python, but not here."""
    if isinstance(value, bool):
        return name == "bool"
    return isinstance(value, TYPES[name])


def equal(expected, actual):
    """Tells whether two scalars are equal; numbers by value, everything else with the same type."""
    numbers = (int, float)
    if isinstance(expected, bool) or isinstance(actual, bool):
        return expected is actual
    if isinstance(expected, numbers) and isinstance(actual, numbers):
        return expected == actual
    if isinstance(expected, (bytes, Binary)) and isinstance(actual, (bytes, Binary)):
        return bytes(expected) == bytes(actual)
    return type(expected) is type(actual) and expected == actual
