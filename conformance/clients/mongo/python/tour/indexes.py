"""Indexes: definitions, uniqueness, conflicts, removal."""

from pymongo import ASCENDING, DESCENDING, IndexModel

from checks import equal, holds, refused


def declare(tour):
    """Declares the checks of this topic."""

    @tour.check
    def indexes_are_created_listed_and_dropped(world):
        collection = world.collection("indexes", [{"_id": 1}])
        equal(collection.create_index([("a", ASCENDING), ("b.c", DESCENDING)]), "a_1_b.c_-1")
        listed = {index["name"]: index["key"].to_dict() for index in collection.list_indexes()}
        equal(listed, {"_id_": {"_id": 1}, "a_1_b.c_-1": {"a": 1, "b.c": -1}})
        collection.drop_index("a_1_b.c_-1")
        equal([index["name"] for index in collection.list_indexes()], ["_id_"])

    @tour.check
    def several_indexes_are_created_in_one_command(world):
        collection = world.collection("indexes", [{"_id": 1}])
        models = [IndexModel("a"), IndexModel("b", sparse=True), IndexModel([("c", "hashed")])]
        equal(collection.create_indexes(models), ["a_1", "b_1", "c_hashed"])
        equal(len(collection.index_information()), 4)
        collection.drop_indexes()
        equal(list(collection.index_information()), ["_id_"])

    @tour.check
    def a_unique_index_refuses_a_second_document_with_mongodbs_text(world):
        collection = world.collection("unique")
        collection.create_index("email", unique=True)
        collection.insert_one({"_id": 1, "email": "a@x"})
        error = refused(11000, lambda: collection.insert_one({"_id": 2, "email": "a@x"}))
        namespace = f"{world.database_name}.unique"
        text = f'E11000 duplicate key error collection: {namespace} index: email_1 dup key: {{ email: "a@x" }}'
        equal(error.details["errmsg"], text)
        equal([error.details["keyPattern"], error.details["keyValue"]], [{"email": 1}, {"email": "a@x"}])
        refused(11000, lambda: collection.update_one({"_id": 3}, {"$set": {"email": "a@x"}}, upsert=True))
        refused(11000, lambda: collection.find_one_and_update({"_id": 3}, {"$set": {"email": "a@x"}}, upsert=True))

    @tour.check
    def a_unique_index_is_not_built_over_duplicates(world):
        collection = world.collection("unique", [{"_id": 1, "a": 1}, {"_id": 2, "a": 1.0}])
        refused(11000, lambda: collection.create_index("a", unique=True))
        equal(list(collection.index_information()), ["_id_"])

    @tour.check
    def unique_indexes_know_arrays_missing_fields_and_number_types(world):
        collection = world.collection("unique")
        collection.create_index("a", unique=True)
        collection.insert_one({"_id": 1, "a": [1, 2]})
        collection.insert_one({"_id": 2})
        refused(11000, lambda: collection.insert_one({"_id": 3, "a": 2.0}))
        refused(11000, lambda: collection.insert_one({"_id": 4, "a": None}))
        collection.insert_one({"_id": 5, "a": [3, 3]})

    @tour.check
    def sparse_and_partial_unique_indexes_leave_documents_out(world):
        collection = world.collection("unique")
        collection.create_index("a", unique=True, sparse=True)
        collection.create_index("b", unique=True, partialFilterExpression={"kind": "x"})
        collection.insert_many([{"_id": 1, "b": 1}, {"_id": 2, "b": 1}, {"_id": 3, "b": 1, "kind": "x"}])
        refused(11000, lambda: collection.insert_one({"_id": 4, "b": 1, "kind": "x"}))

    @tour.check
    def a_unique_index_with_a_collation_ignores_case(world):
        collection = world.collection("unique")
        collection.create_index("name", unique=True, collation={"locale": "en", "strength": 2})
        collection.insert_one({"_id": 1, "name": "Ada"})
        refused(11000, lambda: collection.insert_one({"_id": 2, "name": "ADA"}))

    @tour.check
    def an_index_that_differs_from_one_of_its_name_or_key_is_refused(world):
        collection = world.collection("indexes", [{"_id": 1}])
        collection.create_index("a", name="n", expireAfterSeconds=10)
        collection.create_index("a", name="n", expireAfterSeconds=10)
        refused(85, lambda: collection.create_index("a", name="n", expireAfterSeconds=20))
        refused(86, lambda: collection.create_index("b", name="n"))
        refused(85, lambda: collection.create_index("a", name="m", expireAfterSeconds=10))

    @tour.check
    def bad_index_definitions_are_refused(world):
        collection = world.collection("indexes", [{"_id": 1}])
        refused(67, lambda: collection.create_index([("a", 0)]))
        refused(67, lambda: collection.create_index([("a", "frob")]))
        refused(197, lambda: collection.create_index("a", frob=True))
        refused(27, lambda: collection.drop_index("nothing"))
        refused(2, lambda: list(collection.find({"a": 1}).hint("nothing")))

    @tour.check
    def indexes_are_hidden_and_shown_again(world):
        collection = world.collection("indexes", [{"_id": 1}])
        collection.create_index("a", name="a")
        world.database.command({"collMod": "indexes", "index": {"name": "a", "hidden": True}})
        equal(collection.index_information()["a"].get("hidden"), True)
        world.database.command({"collMod": "indexes", "index": {"name": "a", "hidden": False}})
        holds(not collection.index_information()["a"].get("hidden"), "the index is still hidden")

    @tour.check
    def text_and_geo_indexes_are_searched(world):
        collection = world.collection("special")
        collection.create_index([("words", "text")])
        collection.create_index([("at", "2dsphere")])
        collection.insert_many(
            [
                {"_id": 1, "words": "running shoes", "at": {"type": "Point", "coordinates": [0, 0]}},
                {"_id": 2, "words": "tea", "at": {"type": "Point", "coordinates": [1, 0]}},
            ]
        )
        equal([one["_id"] for one in collection.find({"$text": {"$search": "run"}})], [1])
        near = {"$near": {"$geometry": {"type": "Point", "coordinates": [2, 0]}, "$maxDistance": 150_000}}
        equal([one["_id"] for one in collection.find({"at": near})], [2])
