// The shared state of the checks: a client, a database, the clock, connection strings of other kinds.

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

var ctx = context.Background()

// World is a connected client and the tour's database.
type World struct {
	uri         string
	endpoint    string
	key         string
	certificate string
	tables      string
	client      *mongo.Client
	database    *mongo.Database
}

func openWorld(uri, endpoint, key, certificate, tables string) (*World, error) {
	client, err := mongo.Connect(options.Client().ApplyURI(uri))
	if err != nil {
		return nil, err
	}
	database := client.Database("tour-" + bson.NewObjectID().Hex())
	return &World{uri, endpoint, key, certificate, tables, client, database}, nil
}

// connect connects with other options than the tour's; `login` is `user:password@`, nothing, or nil for the tour's own.
func (world *World) connect(login *string, settings string) (*mongo.Client, error) {
	own, rest, _ := strings.Cut(strings.TrimPrefix(world.uri, "mongodb://"), "@")
	host, _, _ := strings.Cut(rest, "/")
	own += "@"
	if login == nil {
		login = &own
	}
	uri := fmt.Sprintf("mongodb://%s%s/?serverSelectionTimeoutMS=8000&%s", *login, host, settings)
	return mongo.Connect(options.Client().ApplyURI(uri))
}

// user returns the user of the tour's own connection string.
func (world *World) user() string {
	user, _, _ := strings.Cut(strings.TrimPrefix(world.uri, "mongodb://"), ":")
	return user
}

// collection returns a collection of the tour's database that holds exactly these documents.
func (world *World) collection(name string, documents ...any) (*mongo.Collection, error) {
	collection := world.database.Collection(name)
	if err := collection.Drop(ctx); err != nil || len(documents) == 0 {
		return collection, err
	}
	_, err := collection.InsertMany(ctx, documents)
	return collection, err
}

// table reads a file of the data that the tours of all languages share.
func (world *World) table(name string) (bson.D, error) {
	text, err := os.ReadFile(filepath.Join(world.tables, "tour_"+name+".json"))
	if err != nil {
		return nil, err
	}
	var table bson.D
	err = bson.UnmarshalExtJSON(text, false, &table)
	return table, err
}

// setClock moves the clock to an instant in epoch milliseconds.
func (world *World) setClock(instant int64) error {
	_, err := world.clock(http.MethodPut, map[string]int64{"setMs": instant})
	return err
}

// nextSecond moves the clock to the beginning of the next second and returns it in epoch milliseconds.
func (world *World) nextSecond() (int64, error) {
	now, err := world.clock(http.MethodGet, nil)
	if err != nil {
		return 0, err
	}
	next := (now/1000 + 1) * 1000
	return next, world.setClock(next)
}

func (world *World) clock(method string, body any) (int64, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return 0, err
	}
	request, err := http.NewRequest(method, strings.TrimSuffix(world.endpoint, "/")+"/_bolide/clock", bytes.NewReader(text))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Authorization", "Bearer "+world.key)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	var clock struct{ NowMs int64 }
	if response.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("the clock: %s", response.Status)
	}
	err = json.NewDecoder(response.Body).Decode(&clock)
	return clock.NowMs, err
}
