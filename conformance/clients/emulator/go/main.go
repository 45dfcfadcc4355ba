// Testcontainers for Go: starts its Cosmos DB container and uses it with azcosmos. Prints `ok name` or `FAIL name: reason`.
//
// `DOCKER_HOST` names the engine.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/modules/azure/cosmosdb"
)

const image = "bolide"

func main() {
	ctx := context.Background()
	container, err := cosmosdb.Run(ctx, image)
	report("the container starts", err)
	if err == nil {
		report("a database, a container and an item", useDatabase(ctx, container))
		report("the container stops", testcontainers.TerminateContainer(container))
	}
	os.Exit(failed)
}

var failed = 0

func report(name string, err error) {
	if err == nil {
		fmt.Println("ok", name)
		return
	}
	failed = 1
	fmt.Printf("FAIL %s: %s\n", name, strings.ReplaceAll(err.Error(), "\n", " "))
}

// useDatabase uses a client without the module's policy, which would hide an endpoint that cannot be reached.
func useDatabase(ctx context.Context, container *cosmosdb.Container) error {
	connection, err := container.ConnectionString(ctx)
	if err != nil {
		return err
	}
	client, err := azcosmos.NewClientFromConnectionString(connection, nil)
	if err != nil {
		return err
	}
	if _, err := client.CreateDatabase(ctx, azcosmos.DatabaseProperties{ID: "tests"}, nil); err != nil {
		return err
	}
	database, err := client.NewDatabase("tests")
	if err != nil {
		return err
	}
	definition := azcosmos.ContainerProperties{
		ID:                     "items",
		PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"/pk"}},
	}
	if _, err := database.CreateContainer(ctx, definition, nil); err != nil {
		return err
	}
	items, err := client.NewContainer("tests", "items")
	if err != nil {
		return err
	}
	key := azcosmos.NewPartitionKeyString("p")
	if _, err := items.CreateItem(ctx, key, []byte(`{"id":"a","pk":"p"}`), nil); err != nil {
		return err
	}
	_, err = items.ReadItem(ctx, key, "a", nil)
	return err
}
