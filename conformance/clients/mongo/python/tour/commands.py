"""Every command of the server, from the table that the tours of all languages share."""

from collections.abc import Mapping

from checks import equal, holds, refused
from tour.world import data

# Stands for what is not in a reply.
MISSING = object()


def declare(tour):
    """Declares a check per row of the table, and those of commands that do not fit there."""
    table = data("commands")
    for case in table["cases"]:
        kind = "command refused" if "code" in case else "command"
        tour.case(f"{kind}: {next(iter(case['command']))}", lambda world, case=case: run(world, table, case))
    tour.case("command: commitTransaction", lambda world: transaction(world, "commit_transaction", 1))
    tour.case("command: abortTransaction", lambda world: transaction(world, "abort_transaction", 0))
    for name in ("saslStart", "saslContinue"):
        tour.case(f"command: {name}", authentication)
    tour.case("command: logout", logout)

    @tour.check
    def every_command_of_the_server_has_a_row(world):
        rows = {next(iter(case["command"])) for case in table["cases"]} | set(table["elsewhere"])
        commands = world.client.admin.command("listCommands")["commands"]
        equal(sorted(rows ^ commands.keys()), [], "rows without a command, and commands without a row")


def run(world, table, case):
    """Runs the command of a row on a fresh database and compares its reply."""
    database = world.client[f"{world.database_name}-commands"]
    world.client.drop_database(database)
    database["things"].insert_many(table["documents"])
    last = {}
    for command in case.get("before", []):
        last = database.command(filled_in(command, database.name, last))
    target = world.client.admin if case.get("database") == "admin" else database
    command = filled_in(case["command"], database.name, last)
    if "code" in case:
        refused(case["code"], lambda: target.command(command))
        return
    try:
        reply = target.command(command)
    finally:
        for command in case.get("after", []):
            database.command(command)
    for path, expected in case.get("reply", {}).items():
        equal(at(reply, path), filled_in(expected, database.name, {}), path)
    for path in case.get("has", []):
        holds(at(reply, path) is not MISSING, f"there is no {path} in {reply}")


def filled_in(value, database, last):
    """Puts the database's name and the cursor of the last command in their places."""
    if isinstance(value, Mapping):
        return type(value)((name, filled_in(inner, database, last)) for name, inner in value.items())
    if isinstance(value, list):
        return [filled_in(inner, database, last) for inner in value]
    if value == "{cursor}":
        return last["cursor"]["id"]
    return value.replace("{db}", database) if isinstance(value, str) else value


def at(value, path):
    """Returns what is at a dotted path."""
    for name in path.split("."):
        if isinstance(value, Mapping):
            value = value.get(name, MISSING)
        elif isinstance(value, list) and name.isdecimal() and int(name) < len(value):
            value = value[int(name)]
        else:
            return MISSING
    return value


def transaction(world, end, expected):
    """Inserts in a transaction and ends it."""
    collection = world.collection("ended", [{"_id": 0}])
    with world.client.start_session() as session:
        session.start_transaction()
        collection.insert_one({"_id": 1}, session=session)
        getattr(session, end)()
    equal(collection.count_documents({"_id": 1}), expected)


def authentication(world):
    """Authenticates with the two commands, which the driver sends."""
    client = world.connect(authMechanism="SCRAM-SHA-256", directConnection="true")
    users = client.admin.command("connectionStatus")["authInfo"]["authenticatedUsers"]
    equal([user["user"] for user in users], [world.user])


def logout(world):
    """Ends the authentication of the only connection."""
    client = world.connect(directConnection="true", maxPoolSize="1")
    equal(client.admin.command("logout")["ok"], 1)
    refused(13, lambda: client.admin.command("listDatabases"))
