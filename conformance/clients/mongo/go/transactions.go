// Retryable writes, transactions, change streams.

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

func transactions(tour *Tour) {
	tour.check("a retried write is done once", func(world *World) error {
		collection, err := world.collection("accounts", doc("_id", 1, "n", 0))
		data := doc("failCommands", bson.A{"update"}, "closeConnection", true)
		fail := doc("configureFailPoint", "failCommand", "mode", doc("times", 1), "data", data)
		failing := world.client.Database("admin").RunCommand(ctx, fail).Err()
		_, updated := collection.UpdateOne(ctx, doc("_id", 1), doc("$inc", doc("n", 1)))
		return first(err, failing, updated, found(collection, bson.D{}, doc("_id", 1, "n", 1)))
	})
	tour.check("a transaction is seen as a whole once it is committed", committed)
	tour.check("an aborted transaction leaves nothing", aborted)
	tour.check("a change stream shows every kind of write", func(world *World) error {
		collection, err := world.collection("watched", doc("_id", 0))
		if err != nil {
			return err
		}
		stream, err := collection.Watch(ctx, bson.A{}, options.ChangeStream().SetMaxAwaitTime(300*time.Millisecond))
		if err != nil {
			return err
		}
		defer stream.Close(ctx)
		_, inserted := collection.InsertOne(ctx, doc("_id", 1, "a", 1))
		_, updated := collection.UpdateOne(ctx, doc("_id", 1), doc("$set", doc("a", 2)))
		_, replaced := collection.ReplaceOne(ctx, doc("_id", 1), doc("c", 1))
		_, deleted := collection.DeleteOne(ctx, doc("_id", 1))
		kinds, err := kindsOf(stream, 4)
		return first(inserted, updated, replaced, deleted, err, equal(kinds, bson.A{"insert", "update", "replace", "delete"}, "kinds"))
	})
	tour.check("a change stream goes on after a token", resumed)
}

func committed(world *World) error {
	left, leftFilled := world.collection("left", doc("_id", 1, "n", 5))
	right, rightFilled := world.collection("right", doc("_id", 1, "n", 0))
	session, err := world.client.StartSession()
	if err := first(leftFilled, rightFilled, err); err != nil {
		return err
	}
	defer session.EndSession(ctx)
	_, err = session.WithTransaction(ctx, func(inside context.Context) (any, error) {
		_, taken := left.UpdateOne(inside, doc("_id", 1), doc("$inc", doc("n", -5)))
		_, given := right.UpdateOne(inside, doc("_id", 1), doc("$inc", doc("n", 5)))
		return nil, first(taken, given, found(right, bson.D{}, doc("_id", 1, "n", 0)))
	})
	return first(err, found(left, bson.D{}, doc("_id", 1, "n", 0)), found(right, bson.D{}, doc("_id", 1, "n", 5)))
}

func aborted(world *World) error {
	collection, err := world.collection("accounts", doc("_id", 1))
	if err != nil {
		return err
	}
	session, err := world.client.StartSession()
	if err != nil {
		return err
	}
	defer session.EndSession(ctx)
	changedMind := errors.New("changed my mind")
	_, outcome := session.WithTransaction(ctx, func(inside context.Context) (any, error) {
		_, deleted := collection.DeleteOne(inside, doc("_id", 1))
		return nil, first(deleted, changedMind)
	})
	if !errors.Is(outcome, changedMind) {
		return fmt.Errorf("another outcome: %w", outcome)
	}
	return found(collection, bson.D{}, doc("_id", 1))
}

func resumed(world *World) error {
	collection, err := world.collection("watched", doc("_id", 0))
	if err != nil {
		return err
	}
	settings := options.ChangeStream().SetMaxAwaitTime(300 * time.Millisecond)
	stream, err := collection.Watch(ctx, bson.A{}, settings)
	if err != nil {
		return err
	}
	_, inserted := collection.InsertMany(ctx, []any{doc("_id", 1), doc("_id", 2)})
	_, taken := kindsOf(stream, 1)
	token := stream.ResumeToken()
	if err := first(inserted, taken, stream.Close(ctx)); err != nil {
		return err
	}
	next, err := collection.Watch(ctx, bson.A{}, settings.SetResumeAfter(token))
	if err != nil {
		return err
	}
	defer next.Close(ctx)
	if _, err := kindsOf(next, 1); err != nil {
		return err
	}
	var event bson.D
	if err := next.Decode(&event); err != nil {
		return err
	}
	return equal(at(event, "documentKey"), doc("_id", 2), "document key")
}

// kindsOf returns the kinds of the next events; the stream stands at the last of them.
func kindsOf(stream *mongo.ChangeStream, count int) (bson.A, error) {
	kinds := bson.A{}
	for range 20 {
		if !stream.TryNext(ctx) {
			continue
		}
		var event bson.D
		if err := stream.Decode(&event); err != nil {
			return nil, err
		}
		if kinds = append(kinds, at(event, "operationType")); len(kinds) == count {
			return kinds, nil
		}
	}
	return nil, fmt.Errorf("%d events, expected %d: %w", len(kinds), count, stream.Err())
}
