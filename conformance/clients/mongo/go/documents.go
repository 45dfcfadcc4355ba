// Documents and indexes: writes of one and of many, findAndModify, cursors, uniqueness.

package main

import (
	"fmt"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// doc returns a document of names and values in turn.
func doc(pairs ...any) bson.D {
	document := bson.D{}
	for index := 0; index+1 < len(pairs); index += 2 {
		document = append(document, bson.E{Key: pairs[index].(string), Value: pairs[index+1]})
	}
	return document
}

// numbered returns documents with an `_id` from 0.
func numbered(count int) []any {
	documents := make([]any, count)
	for index := range documents {
		documents[index] = doc("_id", int32(index), "a", int32(index%2))
	}
	return documents
}

// all returns every document that a query finds.
func all(cursor *mongo.Cursor, err error) (bson.A, error) {
	if err != nil {
		return nil, err
	}
	var documents []bson.D
	err = cursor.All(ctx, &documents)
	list := bson.A{}
	for _, document := range documents {
		list = append(list, document)
	}
	return list, err
}

func documents(tour *Tour) {
	tour.check("an inserted document is read back", func(world *World) error {
		collection, err := world.collection("documents")
		document := doc("_id", int32(1), "a", bson.A{int32(1), doc("b", nil)}, "l", int64(5))
		_, inserted := collection.InsertOne(ctx, document)
		return first(err, inserted, found(collection, doc("_id", 1), document))
	})
	tour.check("a taken id is refused", func(world *World) error {
		collection, err := world.collection("documents", doc("_id", 1))
		_, taken := collection.InsertOne(ctx, doc("_id", 1))
		return first(err, refused(11000, taken))
	})
	tour.check("updates count what matched and what changed", countedUpdates)
	tour.check("deletes count what they deleted", func(world *World) error {
		collection, err := world.collection("documents", numbered(4)...)
		if err != nil {
			return err
		}
		done, err := collection.DeleteMany(ctx, doc("_id", doc("$gte", 1)))
		if err != nil {
			return err
		}
		return equal(done.DeletedCount, 3, "deleted")
	})
	tour.check("an unordered bulk does all it can", func(world *World) error {
		collection, err := world.collection("documents", doc("_id", 1))
		many := []any{doc("_id", 1), doc("_id", 2), doc("_id", 1), doc("_id", 3)}
		_, refusal := collection.InsertMany(ctx, many, options.InsertMany().SetOrdered(false))
		count, counted := collection.CountDocuments(ctx, bson.D{})
		return first(err, refused(11000, refusal), counted, equal(count, 3, "documents"))
	})
	tour.check("find and modify returns the document before or after", modified)
	tour.check("a cursor gives every document in batches", func(world *World) error {
		collection, err := world.collection("documents", numbered(250)...)
		if err != nil {
			return err
		}
		list, err := all(collection.Find(ctx, bson.D{}, options.Find().SetSort(doc("_id", 1)).SetBatchSize(40)))
		return first(err, equal(list, bson.A(numbered(250)), "documents"))
	})
	tour.check("indexes are created listed and dropped", func(world *World) error {
		collection, err := world.collection("indexes", doc("_id", 1))
		name, created := collection.Indexes().CreateOne(ctx, mongo.IndexModel{Keys: doc("a", 1, "b.c", -1)})
		specifications, listed := collection.Indexes().ListSpecifications(ctx)
		dropped := collection.Indexes().DropOne(ctx, "a_1_b.c_-1")
		return first(err, created, listed, equal(name, "a_1_b.c_-1", "name"), equal(len(specifications), 2, "indexes"), dropped)
	})
	tour.check("a unique index refuses a second document with mongodbs text", unique)
}

func countedUpdates(world *World) error {
	collection, err := world.collection("documents", numbered(4)...)
	if err != nil {
		return err
	}
	done, err := collection.UpdateMany(ctx, doc("a", doc("$lte", 1)), doc("$set", doc("a", 1)))
	if err != nil {
		return err
	}
	upserted, err := collection.ReplaceOne(ctx, doc("_id", 9), doc("b", 1), options.Replace().SetUpsert(true))
	if err != nil {
		return err
	}
	return first(equal(bson.A{done.MatchedCount, done.ModifiedCount}, bson.A{4, 2}, "counts"), equal(upserted.UpsertedID, 9, "upserted"))
}

func modified(world *World) error {
	collection, err := world.collection("documents", doc("_id", 1, "n", 1), doc("_id", 2, "n", 5))
	if err != nil {
		return err
	}
	add := doc("$inc", doc("n", 1))
	var before, after, deleted bson.D
	byNumber := options.FindOneAndUpdate().SetSort(doc("n", -1))
	if err := collection.FindOneAndUpdate(ctx, bson.D{}, add, byNumber).Decode(&before); err != nil {
		return err
	}
	returnsAfter := options.FindOneAndUpdate().SetReturnDocument(options.After)
	if err := collection.FindOneAndUpdate(ctx, doc("_id", 1), add, returnsAfter).Decode(&after); err != nil {
		return err
	}
	if err := collection.FindOneAndDelete(ctx, doc("_id", 1)).Decode(&deleted); err != nil {
		return err
	}
	expected := doc("_id", 1, "n", 2)
	return first(equal(before, doc("_id", 2, "n", 5), "before"), equal(after, expected, "after"), equal(deleted, expected, "deleted"))
}

func unique(world *World) error {
	collection, err := world.collection("unique")
	if err != nil {
		return err
	}
	model := mongo.IndexModel{Keys: doc("email", 1), Options: options.Index().SetUnique(true)}
	_, created := collection.Indexes().CreateOne(ctx, model)
	_, inserted := collection.InsertOne(ctx, doc("_id", 1, "email", "a@x"))
	_, refusal := collection.InsertOne(ctx, doc("_id", 2, "email", "a@x"))
	if err := first(created, inserted, refused(11000, refusal)); err != nil {
		return err
	}
	namespace := world.database.Name() + ".unique"
	text := "E11000 duplicate key error collection: " + namespace + ` index: email_1 dup key: { email: "a@x" }`
	if !strings.Contains(refusal.Error(), text) {
		return fmt.Errorf("another text: %w", refusal)
	}
	return nil
}
