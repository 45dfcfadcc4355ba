"""Queries, updates, pipelines and expressions from the tables that the tours of all languages share."""

from checks import equal, refused
from tour.world import data


def declare(tour):
    """Declares a check per row of each table."""
    queries, updates = data("queries"), data("updates")
    pipelines, expressions = data("pipelines"), data("expressions")
    for case in queries["cases"]:
        tour.case(f"find: {case['name']}", lambda world, case=case: find(world, queries["documents"], case))
    for case in updates["cases"]:
        tour.case(f"update: {case['name']}", lambda world, case=case: update(world, case))
    for case in updates["refusals"]:
        tour.case(f"update refused: {case['name']}", lambda world, case=case: update_refused(world, case))
    for case in pipelines["cases"]:
        tour.case(f"aggregate: {case['name']}", lambda world, case=case: aggregate(world, pipelines, case))
    for case in pipelines["refusals"]:
        tour.case(f"aggregate refused: {case['name']}", lambda world, case=case: pipeline_refused(world, case))
    for number, (name, expression, expected) in enumerate(expressions["cases"]):
        # Some operators have several rows.
        again = sum(other[0] == name for other in expressions["cases"][:number])
        label = f"expression: {name}" + (f", case {again + 1}" if again else "")
        row = (expressions["document"], expression, expected)
        tour.case(label, lambda world, row=row: evaluate(world, *row))


def filled(world, name, documents):
    """Returns a collection with documents that are written only once."""
    if name not in world.database.list_collection_names():
        world.collection(name, documents)
    return world.database[name]


def find(world, documents, case):
    """Finds, and compares documents or ids."""
    collection = filled(world, "queries", documents)
    options = {name: case[name] for name in ("projection", "skip", "limit", "collation") if name in case}
    sort = list(case.get("sort", {"_id": 1}).items())
    found = list(collection.find(case["filter"], sort=sort, **options))
    if "ids" in case:
        equal([one["_id"] for one in found], case["ids"], "ids")
    else:
        equal(found, case["documents"], "documents")
        equal([list(one) for one in found], [list(one) for one in case["documents"]], "the order of the fields")


def update(world, case):
    """Updates the only document and compares it."""
    collection = world.collection("updates", [case["document"]] if "document" in case else [])
    options = {"upsert": case.get("upsert", False)}
    if "arrayFilters" in case:
        options["array_filters"] = case["arrayFilters"]
    collection.update_one(case.get("filter", {"_id": 1}), case["update"], **options)
    found = list(collection.find())
    equal(found, [case["after"]])
    equal(list(found[0]), list(case["after"]), "the order of the fields")


def update_refused(world, case):
    """Updates the only document, which must be refused and change nothing."""
    collection = world.collection("updates", [case["document"]])
    filters = {"array_filters": case["arrayFilters"]} if "arrayFilters" in case else {}
    refused(case["code"], lambda: collection.update_one({"_id": 1}, case["update"], **filters))
    equal(list(collection.find()), [case["document"]])


def aggregate(world, table, case):
    """Runs a pipeline and compares what it returns, and what it writes."""
    filled(world, "others", table["others"])
    source = filled(world, "orders", table["documents"])
    if "written" in case:
        world.collection("written", case.get("before", []))
    if "database" in case:
        source = world.client.admin if case["database"] == "admin" else world.database
    equal(list(source.aggregate(case["pipeline"])), case["documents"])
    if "written" in case:
        equal(list(world.database["written"].find(sort=[("_id", 1)])), case["written"], "the written collection")


def pipeline_refused(world, case):
    """Runs a pipeline that must be refused."""
    refused(case["code"], lambda: list(world.database["orders"].aggregate(case["pipeline"])))


def evaluate(world, document, expression, expected):
    """Evaluates an expression on the only document."""
    collection = filled(world, "expressions", [document])
    (found,) = collection.aggregate([{"$project": {"_id": 0, "v": expression}}])
    equal(found, {"v": expected})
    equal(isinstance(found["v"], bool), isinstance(expected, bool), "a bool")
