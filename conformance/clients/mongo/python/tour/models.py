"""Models of MongoEngine and of Beanie: schemas, indexes, references, sessions that expire."""

import asyncio
from datetime import datetime

from checks import equal, holds
from tour.expiry import date


def declare(tour):
    """Declares the checks of this topic."""

    @tour.check
    def models_of_mongoengine_are_stored_found_and_changed(world):
        import mongoengine

        class Author(mongoengine.Document):
            """A model."""

            name = mongoengine.StringField(required=True, unique=True)
            meta = {"db_alias": "tour", "collection": "authors"}

        class Book(mongoengine.Document):
            """A model with a reference and a list."""

            title = mongoengine.StringField()
            tags = mongoengine.ListField(mongoengine.StringField())
            author = mongoengine.ReferenceField(Author)
            meta = {"db_alias": "tour", "collection": "books", "indexes": ["title"]}

        connection = mongoengine.connect(f"{world.database_name}-models", alias="tour", host=world.uri)
        try:
            author = Author(name="Ada").save()
            Book(title="Notes", tags=["a", "b"], author=author).save()
            raised(mongoengine.NotUniqueError, lambda: Author(name="Ada").save())
            raised(mongoengine.ValidationError, lambda: Author().save())
            equal(Book.objects(tags="b").first().author.name, "Ada")
            equal(Book.objects(title="Notes").update_one(push__tags="c"), 1)
            equal(Book.objects(title="Notes").update_one(pull__tags="a"), 1)
            equal(Book.objects.get(title="Notes").tags, ["b", "c"])
            equal(Book.objects(title__istartswith="no").count(), 1)
            equal(Book.objects.distinct("tags"), ["b", "c"])
            holds("title_1" in Book._get_collection().index_information(), "the index is not there")
        finally:
            connection.drop_database(f"{world.database_name}-models")
            mongoengine.disconnect("tour")

    @tour.check
    def models_of_beanie_are_stored_found_and_expire(world):
        asyncio.run(beanie_models(world))


def raised(kind, call):
    """Expects an error of a kind."""
    try:
        call()
    except kind:
        return
    raise AssertionError(f"no {kind.__name__}")


async def beanie_models(world):
    """Stores and finds documents with the asynchronous client, and lets one expire."""
    import beanie
    from pymongo import AsyncMongoClient, IndexModel

    class Visit(beanie.Document):
        """A model with an index that ends documents."""

        user: str
        at: datetime

        class Settings:
            """Its collection and its indexes."""

            name = "visits"
            indexes = [IndexModel("at", expireAfterSeconds=60)]

    client = AsyncMongoClient(world.uri)
    database = client[f"{world.database_name}-beanie"]
    try:
        await beanie.init_beanie(database=database, document_models=[Visit])
        start = world.clock.next_second()
        await Visit(user="ada", at=date(start)).insert()
        await Visit.insert_many([Visit(user="bob", at=date(start + 5_000)), Visit(user="cid", at=date(start + 9_000))])
        equal(await Visit.find(Visit.user != "ada").count(), 2)
        await Visit.find_one(Visit.user == "bob").update({"$set": {"user": "rob"}})
        equal([visit.user for visit in await Visit.find().sort("at").to_list()], ["ada", "rob", "cid"])
        world.clock.set_ms(start + 60_000)
        equal([visit.user for visit in await Visit.find().sort("at").to_list()], ["rob", "cid"])
        totals = await Visit.aggregate([{"$group": {"_id": None, "n": {"$sum": 1}}}]).to_list()
        equal(totals, [{"_id": None, "n": 2}])
    finally:
        await client.drop_database(database.name)
        await client.close()
