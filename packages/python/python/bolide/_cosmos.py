"""The requests of the Cosmos DB API that this package needs itself."""

from __future__ import annotations

import base64
import hashlib
import hmac
import urllib.request
from email.utils import formatdate
from urllib.parse import quote

from ._admin import send

_VERSION = "2020-07-15"


def delete_all_databases(endpoint: str, key: str) -> None:
    """Deletes every database of the account, one after the other."""
    # A list has at most a page of databases.
    while databases := _request(endpoint, key, "GET", "").get("Databases"):
        for database in databases:
            _request(endpoint, key, "DELETE", database["id"])


def _request(endpoint: str, key: str, verb: str, database: str) -> dict[str, list[dict[str, str]]]:
    """A request for a database, or for the list of databases. Source: "Access control on Azure Cosmos DB resources", REST reference."""
    date = formatdate(usegmt=True)
    link = f"dbs/{database}" if database else ""
    signed = f"{verb.lower()}\ndbs\n{link}\n{date.lower()}\n\n"
    signature = base64.b64encode(hmac.new(base64.b64decode(key), signed.encode(), hashlib.sha256).digest()).decode()
    headers = {
        "Authorization": quote(f"type=master&ver=1.0&sig={signature}", safe=""),
        "x-ms-date": date,
        "x-ms-version": _VERSION,
    }
    path = f"dbs/{quote(database, safe='')}" if database else "dbs"
    request = urllib.request.Request(f"{endpoint}/{path}", headers=headers, method=verb)
    return send(request, f"{verb} /{path}")
