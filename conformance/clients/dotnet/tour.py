"""The tour in the format of the .NET SDK: `python3 tour.py --endpoint URL --key KEY`.

No .NET is needed: the requests are put together here byte for byte as the SDK does, and the answers are read by what the
SDK's sources say, so that its batches and its bulk mode are tested where the SDK itself cannot run.
"""

import argparse
import json
import ssl
import sys
import traceback
import urllib.request
import uuid

import hybrid_row
from client import Client, Container
from hybrid_row import CREATE, DELETE, PATCH, READ, REPLACE, UPSERT, operation

KEY = '["p"]'
CHECKS = []


def check(function):
    """Declares a check; its name is the claim."""
    CHECKS.append(function)
    return function


def item(id, **members):
    """Returns an item's body as the SDK serializes it."""
    return json.dumps({"id": id, "pk": "p", **members}, separators=(",", ":")).encode()


def equal(actual, expected, what="value"):
    """Fails unless both are equal."""
    if actual != expected:
        raise AssertionError(f"{what}: expected {expected!r}, got {actual!r}")


@check
def six_kinds_of_operations_go_in_one_batch(container):
    answer = container.batch(
        KEY,
        [
            operation(CREATE, body=item("six", n=1)),
            operation(READ, id="six"),
            operation(REPLACE, id="six", body=item("six", n=2)),
            operation(UPSERT, body=item("other", n=3)),
            operation(PATCH, id="six", body=b'{"operations":[{"op":"incr","path":"/n","value":5}]}'),
            operation(DELETE, id="other"),
        ],
    )
    equal(answer.status, 200, "status of the batch")
    equal(answer.statuses, [201, 200, 200, 201, 200, 204], "statuses")
    bodies = [json.loads(result["body"]) if "body" in result else None for result in answer.results]
    equal([body and body["n"] for body in bodies], [1, 1, 2, 3, 7, None], "the items after each operation")
    for result, body in zip(answer.results[:5], bodies):
        equal(result["etag"].decode(), body["_etag"], "etag")
    assert all(result["charge"] > 0 for result in answer.results), answer.results


@check
def a_batch_is_one_position_of_the_session(container):
    first = container.batch(KEY, [operation(UPSERT, body=item(f"s{n}")) for n in range(7)])
    second = container.batch(KEY, [operation(UPSERT, body=item(f"s{n}")) for n in range(7)])
    equal(int(second.headers["lsn"]), int(first.headers["lsn"]) + 1, "lsn")
    assert second.headers["x-ms-session-token"], "no session token"


@check
def one_failure_rolls_back_the_batch_and_names_itself(container):
    container.batch(KEY, [operation(UPSERT, body=item("there"))])
    answer = container.batch(
        KEY,
        [operation(CREATE, body=item("new")), operation(CREATE, body=item("there")), operation(READ, id="there")],
    )
    equal(answer.statuses, [424, 409, 424], "statuses")
    equal(answer.status, 409, "status that the SDK shows")
    equal(container.batch(KEY, [operation(READ, id="new")]).statuses, [404], "of what was rolled back")


@check
def etags_decide_inside_a_batch(container):
    etag = container.batch(KEY, [operation(UPSERT, body=item("e"))]).results[0]["etag"].decode()
    equal(container.batch(KEY, [operation(READ, id="e", if_none_match=etag)]).statuses, [304], "unchanged")
    equal(container.batch(KEY, [operation(REPLACE, id="e", body=item("e"), if_match=etag)]).statuses, [200], "right")
    wrong = container.batch(KEY, [operation(READ, id="e"), operation(DELETE, id="e", if_match=etag)])
    equal(wrong.statuses, [424, 412], "wrong")


@check
def items_are_left_out_where_the_client_asks_for_it(container):
    answer = container.batch(
        KEY,
        [
            operation(UPSERT, body=item("m"), minimal=True, indexing="Exclude"),
            operation(UPSERT, body=item("m")),
            operation(READ, id="m"),
        ],
    )
    equal(["body" in result for result in answer.results], [False, True, True], "bodies")
    assert answer.results[0]["etag"], "an etag is there all the same"


@check
def a_condition_of_a_patch_is_kept(container):
    body = b'{"condition":"from c where c.n = 1","operations":[{"op":"set","path":"/n","value":2}]}'
    container.batch(KEY, [operation(UPSERT, body=item("c", n=1))])
    equal(container.batch(KEY, [operation(PATCH, id="c", body=body)]).statuses, [200], "holds")
    equal(container.batch(KEY, [operation(PATCH, id="c", body=body)]).statuses, [412], "holds no more")


@check
def bulk_carries_out_each_operation_by_itself(container):
    of = lambda key, id: json.dumps({"id": id, "pk": key}).encode()
    answer = container.bulk(
        [
            operation(CREATE, key='["b1"]', body=of("b1", "x")),
            operation(CREATE, key='["b2"]', body=of("b2", "x")),
            operation(CREATE, key='["b1"]', body=of("b1", "x")),
            operation(READ, key='["b2"]', id="x"),
            operation(READ, key='["b2"]', id="missing"),
            operation(UPSERT, key='["b1"]', body=of("b1", "x")),
            operation(CREATE, key="[{}]", body=b'{"id":"keyless"}'),
            operation(PATCH, key='["b2"]', id="x", body=b'{"operations":[{"op":"add","path":"/a","value":1}]}'),
            operation(REPLACE, key='["b1"]', id="x", body=of("b1", "x")),
            operation(DELETE, key='["b2"]', id="x"),
        ]
    )
    equal(answer.statuses, [201, 201, 409, 200, 404, 200, 201, 200, 200, 204], "statuses")


@check
def a_bulk_without_failures_is_answered_with_200(container):
    rows = [operation(UPSERT, key=KEY, body=item(f"bulk{n}"), minimal=True) for n in range(100)]
    answer = container.bulk(rows)
    equal((answer.status, answer.statuses), (200, [201] * 100), "statuses")


@check
def large_items_pass_whole(container):
    text = "ü" * 150_000
    body = json.dumps({"id": "large", "pk": "p", "text": text}, ensure_ascii=False).encode()
    answer = container.batch(KEY, [operation(UPSERT, body=body), operation(READ, id="large")])
    equal(json.loads(answer.results[1]["body"])["text"] == text, True, "the text")


@check
def requests_over_the_limits_are_refused_as_a_whole(container):
    empty = container.batch(KEY, [])
    equal((empty.status, empty.results), (400, None), "no operations")
    many = container.batch(KEY, [operation(READ, id="a")] * 101)
    equal((many.status, many.results), (400, None), "101 operations")
    huge = container.batch(KEY, [operation(CREATE, body=item("h", text="x" * 1_100_000))] * 2)
    equal((huge.status, huge.results), (413, None), "more than 2 MiB")


@check
def damaged_bodies_are_refused_and_nothing_of_them_is_done(container):
    headers = {"x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "True"}
    headers["x-ms-documentdb-partitionkey"] = KEY
    body = hybrid_row.stream([operation(CREATE, body=item("damaged")), operation(READ, id="there")])
    for damaged in (body[:-1], body[:40], body[:15] + b"\x00" + body[16:], body[:-1] + bytes([body[-1] ^ 1])):
        answer = container.post_body(damaged, headers)
        equal(answer.status, 400, "status")
        equal(answer.headers["content-type"], "application/json", "content type")
        assert "HybridRow" in answer.json()["message"], answer.json()
    equal(container.batch(KEY, [operation(READ, id="damaged")]).statuses, [404], "of the damaged one")


@check
def what_a_batch_wrote_expires_on_time(container):
    container.batch(KEY, [operation(UPSERT, body=item("brief", ttl=5)), operation(UPSERT, body=item("lasting"))])
    container.advance_seconds(6)
    equal(container.batch(KEY, [operation(READ, id="brief")]).statuses, [404], "after its time")
    equal(container.batch(KEY, [operation(READ, id="lasting")]).statuses, [200], "without a time of its own")


def arguments():
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--endpoint", required=True)
    parser.add_argument("--key", required=True)
    return parser.parse_args()


def prepare(options):
    """Makes a database and a container, and reads what the SDK caches of them."""
    client, database = Client(options.endpoint, options.key), f"dotnet-{uuid.uuid4()}"
    client.send("GET", "", "", "/")
    client.send("POST", "dbs", "", "/dbs", body=json.dumps({"id": database}))
    key = {"paths": ["/pk"], "kind": "Hash", "version": 2}
    body = json.dumps({"id": "items", "partitionKey": key, "defaultTtl": -1})
    equal(client.send("POST", "colls", f"dbs/{database}", f"/dbs/{database}/colls", body=body).status, 201, "create")
    container = Container(client, database, "items")
    container.advance_seconds = lambda seconds: advance(options, seconds)
    return container


def advance(options, seconds):
    """Moves the server's virtual clock."""
    body = json.dumps({"advanceMs": seconds * 1000}).encode()
    headers = {"Authorization": f"Bearer {options.key}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{options.endpoint.rstrip('/')}/_bolide/clock", body, headers, method="PUT")
    context = ssl._create_unverified_context() if options.endpoint.startswith("https") else None
    urllib.request.urlopen(request, timeout=10, context=context).close()


def main():
    """Runs the checks; returns how many failed."""
    container, failed = prepare(arguments()), 0
    for function in CHECKS:
        name = function.__name__.replace("_", " ")
        try:
            function(container)
            print(f"ok {name}", flush=True)
        except Exception as error:  # every failure is a line of the report, whatever its type
            failed += 1
            line = next((f.lineno for f in reversed(traceback.extract_tb(error.__traceback__)) if "tour" in f.filename), 0)
            print(f"FAIL {name}: {type(error).__name__} (line {line}): {' '.join(str(error).split())[:400]}", flush=True)
    print(f"{len(CHECKS) - failed} passed, {failed} failed", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
