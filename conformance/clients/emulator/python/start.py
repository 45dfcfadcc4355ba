"""Testcontainers for Python: starts its Cosmos DB container and uses it with azure-cosmos.

Prints `ok name` or `FAIL name: reason`. `DOCKER_HOST` names the engine; the first argument is whether the port 8081 of
this machine is free, which the container binds by default.
"""

import contextlib
import ssl
import sys
import urllib.request
import warnings

from testcontainers.community.cosmosdb import CosmosDBNoSQLEndpointContainer


def main():
    """Runs the checks with the fixed port, if it is free, and with a mapped one; returns the exit status."""
    # The module's clients do not verify the certificate; one check here does.
    warnings.simplefilter("ignore")
    failed = False
    for name, arguments in (("mapped port", {"bind_ports": False}), ("fixed port", {"bind_ports": True})):
        if name == "fixed port" and sys.argv[1] != "free":
            print("skipped fixed port: another program has 8081")
            continue
        for check, reason in checks(arguments):
            print(f"FAIL {name}: {check}: {reason}" if reason else f"ok {name}: {check}")
            failed = failed or bool(reason)
    return 1 if failed else 0


def checks(arguments):
    """Yields the name of each check and why it failed, if it did."""
    with contextlib.ExitStack() as stack:
        try:
            emulator = stack.enter_context(CosmosDBNoSQLEndpointContainer(**arguments))
        except Exception as error:
            yield "the container starts", repr(error)
            return
        yield "the container starts", None
        for check in (uses_the_database, hands_out_its_certificate, shows_its_page):
            try:
                check(emulator)
            except Exception as error:
                yield check.__name__.replace("_", " "), repr(error)
            else:
                yield check.__name__.replace("_", " "), None


def uses_the_database(emulator):
    """A database, a container and an item, with the module's own client."""
    with emulator.insecure_sync_client() as client:
        database = client.create_database("tests")
        container = database.create_container("items", partition_key={"paths": ["/pk"], "kind": "Hash"})
        container.create_item({"id": "a", "pk": "p"})
        assert container.read_item("a", partition_key="p")["id"] == "a"


def hands_out_its_certificate(emulator):
    """The file that the module copied out of the container is the certificate of the port."""
    context = ssl.create_default_context(cadata=emulator.server_certificate_pem.decode())
    with urllib.request.urlopen(f"https://localhost:{emulator.port}/", context=context) as response:
        assert response.status == 200


def shows_its_page(emulator):
    """The page that the module waits for."""
    context = ssl._create_unverified_context()
    with urllib.request.urlopen(f"{emulator.url}/_explorer/index.html", context=context) as response:
        assert b"AccountEndpoint=" in response.read()


if __name__ == "__main__":
    sys.exit(main())
