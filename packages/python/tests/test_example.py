import bolide
import pytest
from azure.cosmos import CosmosClient, PartitionKey, exceptions


def test_item_lives_for_thirty_days():
    with bolide.server() as db:
        database = CosmosClient(db.endpoint, db.key).create_database("retention")
        tokens = database.create_container("tokens", PartitionKey("/user"), default_ttl=-1)
        tokens.create_item({"id": "t1", "user": "ada", "ttl": 30 * 24 * 60 * 60})

        db.clock.advance(days=29)
        assert tokens.read_item("t1", "ada")["id"] == "t1"
        db.clock.advance(days=1)
        with pytest.raises(exceptions.CosmosResourceNotFoundError):
            tokens.read_item("t1", "ada")
