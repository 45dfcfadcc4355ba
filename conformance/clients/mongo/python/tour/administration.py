"""Databases and collections, validation, what tools ask."""

from checks import equal, holds, refused


def declare(tour):
    """Declares the checks of this topic."""

    @tour.check
    def databases_and_collections_are_listed_and_dropped(world):
        name = f"{world.database_name}-more"
        database = world.client[name]
        database["a"].insert_one({"_id": 1})
        database.create_collection("b")
        holds(name in world.client.list_database_names(), "the database is not listed")
        equal(sorted(database.list_collection_names()), ["a", "b"])
        equal([one["name"] for one in database.list_collections(filter={"name": "b"})], ["b"])
        database.drop_collection("a")
        equal(database.list_collection_names(), ["b"])
        world.client.drop_database(name)
        holds(name not in world.client.list_database_names(), "the database is still listed")

    @tour.check
    def a_collection_is_renamed_with_its_indexes(world):
        collection = world.collection("before", [{"_id": 1}])
        collection.create_index("a", expireAfterSeconds=60)
        world.collection("after", [{"_id": 2}])
        refused(48, lambda: collection.rename("after"))
        collection.rename("after", dropTarget=True)
        renamed = world.database["after"]
        equal([list(renamed.find()), list(renamed.index_information())], [[{"_id": 1}], ["_id_", "a_1"]])

    @tour.check
    def a_collection_that_exists_is_not_created_again(world):
        world.collection("documents", [{"_id": 1}])
        command = {"create": "documents", "collation": {"locale": "en"}}
        refused(48, lambda: world.database.command(command))

    @tour.check
    def collections_of_other_kinds_are_refused(world):
        kinds = [
            {"capped": True, "size": 1000},
            {"timeseries": {"timeField": "at"}},
            {"clusteredIndex": {"key": {"_id": 1}, "unique": True}},
        ]
        for options in kinds:
            refused(238, lambda: world.database.command({"create": "other", **options}))
        equal("other" in world.database.list_collection_names(), False)

    @tour.check
    def a_view_shows_what_its_pipeline_gives_and_takes_no_writes(world):
        base = world.collection("documents", [{"_id": 1, "a": 1}, {"_id": 2, "a": 2}])
        world.database.drop_collection("large")
        view = world.database.create_collection("large", viewOn=base.name, pipeline=[{"$match": {"a": {"$gte": 2}}}])
        base.insert_one({"_id": 3, "a": 3})
        equal([list(view.find({"_id": 3})), view.count_documents({})], [[{"_id": 3, "a": 3}], 2])
        refused(166, lambda: view.insert_one({"_id": 4}))
        world.database.drop_collection("large")

    @tour.check
    def a_validator_refuses_documents(world):
        world.database.drop_collection("valid")
        schema = {"$jsonSchema": {"required": ["a"], "properties": {"a": {"bsonType": "int"}}}}
        world.database.create_collection("valid", validator=schema)
        collection = world.database["valid"]
        collection.insert_one({"_id": 1, "a": 1})
        error = refused(121, lambda: collection.insert_one({"_id": 2, "a": "x"}))
        holds("errInfo" in error.details, "the error does not say why")
        collection.insert_one({"_id": 3}, bypass_document_validation=True)

    @tour.check
    def a_collection_has_a_default_collation(world):
        world.database.drop_collection("names")
        collection = world.database.create_collection("names", collation={"locale": "en", "strength": 2})
        collection.insert_one({"_id": 1, "name": "Ada"})
        equal(collection.find_one({"name": "ADA"}), {"_id": 1, "name": "Ada"})
        (listed,) = world.database.list_collections(filter={"name": "names"})
        equal([listed["options"]["collation"][key] for key in ("locale", "strength")], ["en", 2])

    @tour.check
    def bad_names_are_refused(world):
        refused(73, lambda: world.database.command({"insert": "", "documents": [{}]}))
        refused(73, lambda: world.database.command({"insert": "a$b", "documents": [{}]}))
        refused(73, lambda: world.client.admin.command({"renameCollection": f"{world.database_name}.a", "to": "x"}))

    @tour.check
    def a_query_is_explained(world):
        collection = world.collection("documents", [{"_id": 1}])
        plan = collection.find({"_id": 1}).explain()
        holds("winningPlan" in plan["queryPlanner"], f"no plan: {plan}")
        verbose = {"explain": {"find": "documents", "filter": {"a": 1}}, "verbosity": "executionStats"}
        equal(world.database.command(verbose)["executionStats"]["nReturned"], 0)

    @tour.check
    def statistics_count_what_is_there(world):
        world.collection("documents", [{"_id": n} for n in range(3)])
        stats = world.database.command("collStats", "documents")
        equal([stats["count"], stats["nindexes"]], [3, 1])
        holds(world.database.command("dbStats")["collections"] >= 1, "no collections are counted")
        holds(world.client.admin.command("serverStatus")["uptime"] >= 0, "no uptime")

    @tour.check
    def tools_get_the_answers_they_ask_for(world):
        admin = world.client.admin
        for command in ("buildInfo", "hostInfo", "getCmdLineOpts", "connectionStatus", "top", "listCommands"):
            equal(admin.command(command)["ok"], 1, command)
        equal(admin.command({"getLog": "startupWarnings"})["log"], [])
        version = admin.command({"getParameter": 1, "featureCompatibilityVersion": 1})
        equal(version["featureCompatibilityVersion"]["version"], "7.0")
        refused(72, lambda: admin.command({"getParameter": 1, "frob": 1}))
        equal(world.database.validate_collection("documents")["valid"], True)

    @tour.check
    def an_operation_ends_at_its_time_limit(world):
        fail = {"failCommands": ["find"], "errorCode": 50}
        admin = world.client.admin
        admin.command({"configureFailPoint": "failCommand", "mode": {"times": 1}, "data": fail})
        error = refused(50, lambda: world.database["documents"].find_one(max_time_ms=10))
        holds(error.timeout, "the driver does not take it for the end of the time")

    @tour.check
    def write_concerns_are_satisfied_or_refused(world):
        from pymongo import WriteConcern
        from pymongo.errors import WriteConcernError

        collection = world.collection("documents")
        collection.with_options(write_concern=WriteConcern("majority", j=True)).insert_one({"_id": 1})
        try:
            collection.with_options(write_concern=WriteConcern(5)).insert_one({"_id": 2})
        except WriteConcernError as error:
            equal(error.code, 100)
            equal(collection.count_documents({}), 2, "the write is done all the same")
            return
        raise AssertionError("five members acknowledged the write")
