// Time to live: the index on `_ts` with the field `ttl`, and indexes on dates, to the millisecond.

package main

import (
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

func expiry(tour *Tour) {
	tour.check("documents end seconds after their last change", func(world *World) error {
		collection, err := expiring(world, "sessions", "_ts", 10)
		if err != nil {
			return err
		}
		start, err := world.nextSecond()
		if err != nil {
			return err
		}
		_, inserted := collection.InsertMany(ctx, []any{doc("_id", 1), doc("_id", 2)})
		moved := world.setClock(start + 5_000)
		_, changed := collection.UpdateOne(ctx, doc("_id", 2), doc("$set", doc("seen", true)))
		return first(inserted, moved, changed,
			visibleAt(world, collection, start+9_999, 1, 2),
			visibleAt(world, collection, start+10_000, 2),
			visibleAt(world, collection, start+15_000))
	})
	tour.check("a document has a time to live of its own", func(world *World) error {
		collection, err := expiring(world, "sessions", "_ts", 10)
		if err != nil {
			return err
		}
		start, err := world.nextSecond()
		if err != nil {
			return err
		}
		_, inserted := collection.InsertMany(ctx, []any{
			doc("_id", 1, "ttl", 20.0), doc("_id", 2, "ttl", int32(20)), doc("_id", 3, "ttl", int64(20)),
			doc("_id", 4, "ttl", 20.5), doc("_id", 5, "ttl", int64(2147483649)),
		})
		return first(inserted,
			visibleAt(world, collection, start+9_999, 1, 2, 3, 4, 5),
			visibleAt(world, collection, start+10_000, 1, 2, 3),
			visibleAt(world, collection, start+20_000))
	})
	tour.check("dates end documents to the millisecond", func(world *World) error {
		collection, err := expiring(world, "dates", "expireAt", 0)
		if err != nil {
			return err
		}
		start, err := world.nextSecond()
		if err != nil {
			return err
		}
		_, inserted := collection.InsertMany(ctx, []any{
			doc("_id", 1, "expireAt", bson.DateTime(start+1_234)), doc("_id", 2, "expireAt", bson.DateTime(start+1_235)), doc("_id", 3),
		})
		return first(inserted,
			visibleAt(world, collection, start+1_233, 1, 2, 3),
			visibleAt(world, collection, start+1_234, 2, 3),
			visibleAt(world, collection, start+1_235, 3))
	})
}

// expiring returns an empty collection with an index that ends documents.
func expiring(world *World, name, field string, seconds int32) (*mongo.Collection, error) {
	collection, err := world.collection(name)
	if err != nil {
		return nil, err
	}
	model := mongo.IndexModel{Keys: doc(field, 1), Options: options.Index().SetExpireAfterSeconds(seconds)}
	_, err = collection.Indexes().CreateOne(ctx, model)
	return collection, err
}

// visibleAt moves the clock and fails unless exactly these documents exist then.
func visibleAt(world *World, collection *mongo.Collection, instant int64, ids ...int) error {
	if err := world.setClock(instant); err != nil {
		return err
	}
	documents, err := all(collection.Find(ctx, bson.D{}, options.Find().SetSort(doc("_id", 1))))
	found, expected := bson.A{}, bson.A{}
	for _, document := range documents {
		found = append(found, at(document.(bson.D), "_id"))
	}
	for _, id := range ids {
		expected = append(expected, id)
	}
	count, counted := collection.CountDocuments(ctx, bson.D{})
	estimated, estimation := collection.EstimatedDocumentCount(ctx)
	return first(err, counted, estimation, equal(found, expected, "find"),
		equal(bson.A{count, estimated}, bson.A{len(ids), len(ids)}, "counts"))
}
