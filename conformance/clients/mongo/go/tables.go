// Queries, updates, pipelines and expressions from the tables that the tours of all languages share.

package main

import (
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// at returns a member of a document, or nil.
func at(document bson.D, name string) any {
	for _, element := range document {
		if element.Key == name {
			return element.Value
		}
	}
	return nil
}

// list returns a member that is a list; without it an empty one.
func list(document bson.D, name string) bson.A {
	values, ok := at(document, name).(bson.A)
	if !ok {
		return bson.A{}
	}
	return values
}

// whole returns a member that is a whole number; without it 0.
func whole(document bson.D, name string) int64 {
	value, _ := number(at(document, name))
	return int64(value)
}

func sharedTables(tour *Tour) error {
	tables := map[string]bson.D{}
	for _, name := range []string{"queries", "updates", "pipelines", "expressions"} {
		table, err := tour.world.table(name)
		if err != nil {
			return err
		}
		tables[name] = table
	}
	fills := []struct {
		name      string
		documents bson.A
	}{
		{"queries", list(tables["queries"], "documents")},
		{"orders", list(tables["pipelines"], "documents")},
		{"others", list(tables["pipelines"], "others")},
		{"expressions", bson.A{at(tables["expressions"], "document")}},
	}
	for _, fill := range fills {
		if _, err := tour.world.collection(fill.name, fill.documents...); err != nil {
			return err
		}
	}
	rows(tour, "find: ", list(tables["queries"], "cases"), find)
	rows(tour, "update: ", list(tables["updates"], "cases"), update)
	rows(tour, "update refused: ", list(tables["updates"], "refusals"), updateRefused)
	rows(tour, "aggregate: ", list(tables["pipelines"], "cases"), aggregate)
	rows(tour, "aggregate refused: ", list(tables["pipelines"], "refusals"), func(world *World, row bson.D) error {
		_, err := all(world.database.Collection("orders").Aggregate(ctx, list(row, "pipeline")))
		return refused(int(whole(row, "code")), err)
	})
	expressions(tour, list(tables["expressions"], "cases"))
	return nil
}

func rows(tour *Tour, prefix string, cases bson.A, body func(*World, bson.D) error) {
	for _, one := range cases {
		row := one.(bson.D)
		tour.check(prefix+at(row, "name").(string), func(world *World) error { return body(world, row) })
	}
}

func find(world *World, row bson.D) error {
	settings := options.Find().SetSort(doc("_id", 1)).SetSkip(whole(row, "skip")).SetLimit(whole(row, "limit"))
	if sort := at(row, "sort"); sort != nil {
		settings.SetSort(sort)
	}
	if projection := at(row, "projection"); projection != nil {
		settings.SetProjection(projection)
	}
	if collation, ok := at(row, "collation").(bson.D); ok {
		settings.SetCollation(&options.Collation{Locale: at(collation, "locale").(string), Strength: int(whole(collation, "strength"))})
	}
	documents, err := all(world.database.Collection("queries").Find(ctx, at(row, "filter"), settings))
	if err != nil {
		return err
	}
	if at(row, "ids") == nil {
		return equal(documents, list(row, "documents"), "documents")
	}
	ids := bson.A{}
	for _, document := range documents {
		ids = append(ids, at(document.(bson.D), "_id"))
	}
	return equal(ids, list(row, "ids"), "ids")
}

// updated runs the update of a row; the error is the server's.
func updated(world *World, row bson.D) (*mongo.Collection, error) {
	start := []any{}
	if document := at(row, "document"); document != nil {
		start = append(start, document)
	}
	collection, err := world.collection("updates", start...)
	if err != nil {
		return nil, fmt.Errorf("the start: %w", err)
	}
	filter := at(row, "filter")
	if filter == nil {
		filter = doc("_id", 1)
	}
	upsert, _ := at(row, "upsert").(bool)
	settings := options.UpdateOne().SetUpsert(upsert)
	if filters := list(row, "arrayFilters"); len(filters) > 0 {
		settings.SetArrayFilters(filters)
	}
	_, err = collection.UpdateOne(ctx, filter, at(row, "update"), settings)
	return collection, err
}

func update(world *World, row bson.D) error {
	collection, err := updated(world, row)
	if err != nil {
		return err
	}
	documents, err := all(collection.Find(ctx, bson.D{}))
	return first(err, equal(documents, bson.A{at(row, "after")}, "documents"))
}

func updateRefused(world *World, row bson.D) error {
	collection, refusal := updated(world, row)
	if err := refused(int(whole(row, "code")), refusal); err != nil {
		return err
	}
	documents, err := all(collection.Find(ctx, bson.D{}))
	return first(err, equal(documents, bson.A{at(row, "document")}, "documents"))
}

func aggregate(world *World, row bson.D) error {
	pipeline := list(row, "pipeline")
	writes := at(row, "written") != nil
	if writes {
		if _, err := world.collection("written", list(row, "before")...); err != nil {
			return err
		}
	}
	run := func() (*mongo.Cursor, error) { return world.database.Collection("orders").Aggregate(ctx, pipeline) }
	switch database := at(row, "database").(type) {
	case string:
		run = func() (*mongo.Cursor, error) { return world.client.Database(database).Aggregate(ctx, pipeline) }
	case bool:
		run = func() (*mongo.Cursor, error) { return world.database.Aggregate(ctx, pipeline) }
	}
	documents, err := all(run())
	if err := first(err, equal(documents, list(row, "documents"), "documents")); err != nil || !writes {
		return err
	}
	written, err := all(world.database.Collection("written").Find(ctx, bson.D{}, options.Find().SetSort(doc("_id", 1))))
	return first(err, equal(written, list(row, "written"), "the written collection"))
}

func expressions(tour *Tour, cases bson.A) {
	seen := map[string]int{}
	for _, one := range cases {
		row := one.(bson.A)
		name := row[0].(string)
		seen[name]++
		label := "expression: " + name
		if seen[name] > 1 {
			label = fmt.Sprintf("%s, case %d", label, seen[name])
		}
		tour.check(label, func(world *World) error {
			project := doc("$project", doc("_id", 0, "v", row[1]))
			documents, err := all(world.database.Collection("expressions").Aggregate(ctx, bson.A{project}))
			return first(err, equal(documents, bson.A{doc("v", row[2])}, "value"))
		})
	}
}
