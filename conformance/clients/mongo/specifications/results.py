"""Results of PyMongo in the form that the specifications describe."""

from collections.abc import Mapping

from bson.raw_bson import RawBSONDocument
from pymongo import results


def of(value):
    """Returns a result as plain documents, lists and scalars."""
    if isinstance(value, results.InsertOneResult):
        return acknowledged(value, lambda: {"insertedId": value.inserted_id})
    if isinstance(value, results.InsertManyResult):
        return acknowledged(value, lambda: {"insertedIds": by_index(enumerate(value.inserted_ids))})
    if isinstance(value, results.DeleteResult):
        return acknowledged(value, lambda: {"deletedCount": value.deleted_count})
    if isinstance(value, results.UpdateResult):
        return acknowledged(value, lambda: update(value))
    if isinstance(value, results.BulkWriteResult):
        return acknowledged(value, lambda: bulk(value.bulk_api_result))
    if isinstance(value, results.ClientBulkWriteResult):
        return acknowledged(value, lambda: client_bulk(value))
    if isinstance(value, (RawBSONDocument, Mapping)):
        return dict(value)
    return value


def acknowledged(value, fields):
    """Returns the fields of a result that the server acknowledged; others have none."""
    return {"acknowledged": True, **fields()} if value.acknowledged else {"acknowledged": False}


def update(value):
    """Returns the fields of an update."""
    upserted = value.upserted_id is not None
    fields = {
        "matchedCount": value.matched_count,
        "modifiedCount": value.modified_count,
        "upsertedCount": int(upserted),
    }
    return fields | ({"upsertedId": value.upserted_id} if upserted else {})


def bulk(counts):
    """Returns the fields of a bulk write, from PyMongo's own counts. It does not tell the ids of inserted documents."""
    return {
        "deletedCount": counts["nRemoved"],
        "insertedCount": counts["nInserted"],
        "matchedCount": counts["nMatched"],
        "modifiedCount": counts["nModified"],
        "upsertedCount": counts["nUpserted"],
        "upsertedIds": by_index((one["index"], one["_id"]) for one in counts["upserted"]),
    }


def client_bulk(value):
    """Returns the fields of a client's bulk write."""
    fields = {
        "deletedCount": value.deleted_count,
        "insertedCount": value.inserted_count,
        "matchedCount": value.matched_count,
        "modifiedCount": value.modified_count,
        "upsertedCount": value.upserted_count,
    }
    if value.has_verbose_results:
        fields["insertResults"] = {str(index): of(one) for index, one in value.insert_results.items()}
        fields["updateResults"] = {str(index): of(one) for index, one in value.update_results.items()}
        fields["deleteResults"] = {str(index): of(one) for index, one in value.delete_results.items()}
    return fields


def by_index(pairs):
    """Returns a document whose keys are indexes, which are text in JSON."""
    return {str(index): value for index, value in pairs}
