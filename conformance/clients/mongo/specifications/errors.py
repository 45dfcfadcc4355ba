"""Compares errors of PyMongo with what a test expects of them."""

from collections.abc import Mapping

from pymongo import errors

import results
from matching import Differs

# Errors that a server has sent; every other is the client's, those of the network included.
FROM_SERVER = (errors.OperationFailure, errors.ClientBulkWriteException)


def check(matcher, expected, error):
    """Raises `Differs` unless the error is as expected."""
    details = details_of(error)
    if "isClientError" in expected:
        if expected["isClientError"] == isinstance(error, FROM_SERVER):
            raise differs("isClientError", expected["isClientError"], error)
    if "isTimeoutError" in expected:
        if expected["isTimeoutError"] != getattr(error, "timeout", False):
            raise differs("isTimeoutError", expected["isTimeoutError"], error)
    if "errorContains" in expected and expected["errorContains"].lower() not in text_of(error).lower():
        raise differs("errorContains", expected["errorContains"], error)
    if "errorCode" in expected and expected["errorCode"] not in values(details, "code"):
        raise differs("errorCode", expected["errorCode"], error)
    if "errorCodeName" in expected and expected["errorCodeName"] not in values(details, "codeName"):
        raise differs("errorCodeName", expected["errorCodeName"], error)
    for label in expected.get("errorLabelsContain", []):
        if not has_label(error, label):
            raise differs("errorLabelsContain", label, error)
    for label in expected.get("errorLabelsOmit", []):
        if has_label(error, label):
            raise differs("errorLabelsOmit", label, error)
    if "errorResponse" in expected:
        matcher.match(expected["errorResponse"], details, "errorResponse")
    if "writeErrors" in expected:
        found = {str(one["idx"]): one for one in error.write_errors}
        matcher.match(expected["writeErrors"], found, "writeErrors", False)
    if "writeConcernErrors" in expected:
        for one, other in zip(expected["writeConcernErrors"], error.write_concern_errors, strict=True):
            matcher.match(one, other, "writeConcernErrors", True)
    if "expectResult" in expected:
        matcher.match(expected["expectResult"], partial_result(error), "expectResult")


def differs(what, expected, error):
    """Returns the error that says what was wrong with `error`."""
    return Differs(f"{what}: expected {expected!r}, got {type(error).__name__}: {str(error)[:300]}")


def details_of(error):
    """Returns the reply that is in an error, if the server has sent one."""
    if isinstance(error, errors.ClientBulkWriteException) and error.error is not None:
        return details_of(error.error)
    details = getattr(error, "details", None)
    return details if isinstance(details, Mapping) else {}


def values(details, field):
    """Returns a field of an error and of those inside it."""
    inner = [*details.get("writeErrors", []), *details.get("writeConcernErrors", [])]
    if isinstance(details.get("writeConcernError"), Mapping):
        inner.append(details["writeConcernError"])
    return [one[field] for one in [details, *inner] if field in one]


def text_of(error):
    """Returns all that an error says."""
    messages = [str(error), *map(str, values(details_of(error), "errmsg"))]
    return " ".join(messages)


def has_label(error, label):
    """Tells whether an error has a label. Errors that are not PyMongo's have none."""
    inner = getattr(error, "error", None)
    own = isinstance(error, errors.PyMongoError) and error.has_error_label(label)
    return own or (inner is not None and has_label(inner, label))


def partial_result(error):
    """Returns what was written before a bulk write failed."""
    if isinstance(error, errors.BulkWriteError):
        return results.bulk(error.details)
    if isinstance(error, errors.ClientBulkWriteException):
        return results.of(error.partial_result)
    return results.of(details_of(error).get("result"))
