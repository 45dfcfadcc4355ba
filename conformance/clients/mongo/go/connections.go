// Connections: topologies, encryption, compression, authentication.

package main

import (
	"fmt"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

func connections(tour *Tour) {
	pings := func(settings func(*World) string) func(*World) error {
		return func(world *World) error {
			client, err := world.connect(nil, settings(world))
			if err != nil {
				return err
			}
			return first(client.Ping(ctx, nil), client.Disconnect(ctx))
		}
	}
	fixed := func(settings string) func(*World) error { return pings(func(*World) string { return settings }) }
	tour.check("clients find the primary of the replica set", fixed("replicaSet=globaldb"))
	tour.check("clients connect directly", fixed("directConnection=true"))
	tour.check("connections are encrypted on the same port", pings(func(world *World) string {
		return "replicaSet=globaldb&tls=true&tlsCAFile=" + world.certificate
	}))
	tour.check("connections are not encrypted unless asked", fixed("replicaSet=globaldb&tls=false"))
	for _, compressor := range []string{"snappy", "zlib", "zstd"} {
		tour.check("messages are compressed with "+compressor, func(world *World) error { return compressed(world, compressor) })
	}
	for name, mechanism := range map[string]string{"scram sha 256": "SCRAM-SHA-256", "scram sha 1": "SCRAM-SHA-1"} {
		tour.check(name+" authenticates", func(world *World) error {
			return lists(world, nil, "replicaSet=globaldb&authMechanism="+mechanism)
		})
	}
	tour.check("a wrong password is refused", func(world *World) error {
		login := world.user() + ":d3Jvbmc@"
		err := lists(world, &login, "directConnection=true")
		if err != nil && strings.Contains(err.Error(), "uthentication") {
			return nil
		}
		return fmt.Errorf("expected a failed authentication, got %v", err)
	})
	tour.check("nothing is read without credentials", func(world *World) error {
		nobody := ""
		return refused(13, lists(world, &nobody, "directConnection=true"))
	})
}

func lists(world *World, login *string, settings string) error {
	client, err := world.connect(login, settings)
	if err != nil {
		return err
	}
	_, err = client.ListDatabaseNames(ctx, bson.D{})
	return first(err, client.Disconnect(ctx))
}

func compressed(world *World, compressor string) error {
	client, err := world.connect(nil, "replicaSet=globaldb&compressors="+compressor)
	if err != nil {
		return err
	}
	collection := client.Database(world.database.Name()).Collection("compressed")
	filter := bson.D{{Key: "_id", Value: compressor}}
	document := append(filter, bson.E{Key: "text", Value: strings.Repeat("compress me ", 5000)})
	_, err = collection.ReplaceOne(ctx, filter, document, options.Replace().SetUpsert(true))
	return first(err, found(collection, filter, document), client.Disconnect(ctx))
}

// found fails unless the filter finds this document.
func found(collection *mongo.Collection, filter, document bson.D) error {
	var one bson.D
	if err := collection.FindOne(ctx, filter).Decode(&one); err != nil {
		return err
	}
	return equal(one, document, "document")
}
