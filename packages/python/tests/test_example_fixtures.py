from pymongo import MongoClient


def test_document_lives_for_thirty_days(bolide, bolide_clock):
    with MongoClient(bolide.mongo_uri) as client:
        tokens = client.retention.tokens
        tokens.create_index("createdAt", expireAfterSeconds=30 * 24 * 60 * 60)
        tokens.insert_one({"_id": "t1", "user": "ada", "createdAt": bolide_clock.now()})

        bolide_clock.advance(days=29)
        assert tokens.find_one({"user": "ada"})["_id"] == "t1"
        bolide_clock.advance(days=1)
        assert tokens.find_one({"user": "ada"}) is None
