"""Requests as the .NET SDK sends them in gateway mode, on one connection."""

import base64
import hashlib
import hmac
import http.client
import json
import ssl
import urllib.parse
import uuid
from email.utils import formatdate

import hybrid_row

USER_AGENT = "cosmos-netstandard-sdk/3.46.0|1|X64|Linux|.NET 8.0|N|"


class Answer:
    """Status, headers and body of a response."""

    def __init__(self, response):
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()

    def json(self):
        """Returns the body as JSON."""
        return json.loads(self.body)


class BatchAnswer:
    """A response as parsed by `TransactionalBatchResponse`."""

    def __init__(self, answer, operations):
        self.status, self.headers, self.raw = answer.status, answer.headers, answer.body
        self.results = None
        self.message = None
        if answer.body[:1] == bytes([hybrid_row.VERSION]):
            self.results = hybrid_row.results(answer.body)
            if answer.status == 207:
                self.status = next((r["status"] for r in self.results if r["status"] not in (424, *range(200, 400))), 207)
        elif answer.status >= 400:
            self.message = answer.json()["message"]
        if answer.status < 300 and (self.results is None or len(self.results) != operations):
            raise hybrid_row.Malformed(f"{operations} operations, and the answer is {answer.body[:200]!r}")

    @property
    def statuses(self):
        """The statuses of the operations."""
        return [result["status"] for result in self.results]


class Client:
    """A connection to an account."""

    def __init__(self, endpoint, key):
        address = urllib.parse.urlsplit(endpoint)
        if address.scheme == "https":
            # The certificate is the server's own, as with the official emulator.
            context = ssl._create_unverified_context()
            self._connection = http.client.HTTPSConnection(address.hostname, address.port, timeout=30, context=context)
        else:
            self._connection = http.client.HTTPConnection(address.hostname, address.port, timeout=30)
        self._key = base64.b64decode(key)

    def send(self, method, resource_type, link, path, headers=None, body=None):
        """Sends a request that is signed for `link`."""
        date = formatdate(usegmt=True).lower()
        sent = {
            "x-ms-version": "2020-07-15",
            "x-ms-date": date,
            "x-ms-activity-id": str(uuid.uuid4()),
            "x-ms-cosmos-sdk-supportedcapabilities": "1",
            "User-Agent": USER_AGENT,
            "Cache-Control": "no-cache",
            "Accept": "application/json",
            "Authorization": self._token(method, resource_type, link, date),
        }
        self._connection.request(method, path, body=body, headers=sent | (headers or {}))
        return Answer(self._connection.getresponse())

    def _token(self, method, resource_type, link, date):
        """Returns the token; the SDK escapes with lower-case digits."""
        payload = f"{method.lower()}\n{resource_type}\n{link}\n{date}\n\n".encode()
        signature = base64.b64encode(hmac.new(self._key, payload, hashlib.sha256).digest()).decode()
        token = urllib.parse.quote(f"type=master&ver=1.0&sig={signature}", safe="")
        return "".join(lower_escapes(token))


def lower_escapes(token):
    """Yields the characters of a percent-encoded text, the digits of escapes in lower case."""
    at = 0
    while at < len(token):
        length = 3 if token[at] == "%" else 1
        yield token[at : at + length].lower() if length == 3 else token[at]
        at += length


class Container:
    """A container as the SDK caches it: its definition and its ranges."""

    def __init__(self, client, database, name):
        self._client = client
        self.link = f"dbs/{database}/colls/{name}"
        definition = client.send("GET", "colls", self.link, f"/{self.link}")
        self.rid = definition.json()["_rid"]
        self.ranges = self._read_ranges(definition.json()["_self"])

    def _read_ranges(self, self_link):
        """Reads the partition key ranges by resource id, until nothing has changed."""
        etag, ranges = None, []
        for _ in range(10):
            headers = {"A-IM": "Incremental Feed", "x-ms-max-item-count": "-1"}
            headers |= {"If-None-Match": etag} if etag else {}
            answer = self._client.send("GET", "pkranges", self.rid.lower(), f"/{self_link}pkranges", headers)
            if answer.status == 304:
                return ranges
            ranges += answer.json()["PartitionKeyRanges"]
            etag = answer.headers["etag"]
        raise AssertionError("the ranges never end with 304")

    def batch(self, key, operations, headers=None):
        """`CreateTransactionalBatch(key)…ExecuteAsync()`."""
        return self._post(
            operations,
            {
                "x-ms-cosmos-is-batch-request": "True",
                "x-ms-cosmos-batch-atomic": "True",
                "x-ms-cosmos-batch-ordered": "True",
                "x-ms-documentdb-partitionkey": key,
            }
            | (headers or {}),
        )

    def bulk(self, operations):
        """What the dispatcher of `AllowBulkExecution` sends for a range; each operation has its key."""
        return self._post(
            operations,
            {
                "x-ms-documentdb-partitionkeyrangeid": self.ranges[0]["id"],
                "x-ms-cosmos-batch-continue-on-error": "True",
                "x-ms-cosmos-batch-atomic": "False",
                "x-ms-cosmos-is-batch-request": "True",
                "x-ms-cosmos-intended-collection-rid": self.rid,
            },
        )

    def post_body(self, body, headers):
        """Sends a body as it is."""
        return self._client.send("POST", "docs", self.link, f"/{self.link}/docs", headers, body)

    def _post(self, operations, headers):
        return BatchAnswer(self.post_body(hybrid_row.stream(operations), headers), len(operations))
