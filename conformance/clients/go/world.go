// The shared state of the checks: a client, a database, the clock.

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync/atomic"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// Enough for five partition key ranges; the default of 400 gives one.
const fiveRanges = 30000

// Item is an item as JSON has it.
type Item = map[string]any

var (
	ctx  = context.Background()
	next atomic.Int32
)

// World is a connected client and the tour's database.
type World struct {
	endpoint string
	key      string
	client   *azcosmos.Client
	database *azcosmos.DatabaseClient
}

// openWorld connects and creates the tour's database.
func openWorld(endpoint, key string) (*World, error) {
	credential, err := azcosmos.NewKeyCredential(key)
	if err != nil {
		return nil, err
	}
	client, err := azcosmos.NewClientWithKey(endpoint, credential, nil)
	if err != nil {
		return nil, err
	}
	id := unique("tour")
	if _, err := client.CreateDatabase(ctx, azcosmos.DatabaseProperties{ID: id}, nil); err != nil {
		return nil, err
	}
	database, err := client.NewDatabase(id)
	return &World{endpoint: endpoint, key: key, client: client, database: database}, err
}

func (world *World) close() error {
	_, err := world.database.Delete(ctx, nil)
	return err
}

// container creates a container keyed by `/pk` on one range or on five; `settings` may change what it is created with.
func (world *World) container(label string, wide bool, settings func(*azcosmos.ContainerProperties)) (*azcosmos.ContainerClient, error) {
	properties := azcosmos.ContainerProperties{
		ID:                     unique(label),
		PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"/pk"}, Version: 2},
	}
	if settings != nil {
		settings(&properties)
	}
	options := &azcosmos.CreateContainerOptions{}
	if wide {
		throughput := azcosmos.NewManualThroughputProperties(fiveRanges)
		options.ThroughputProperties = &throughput
	}
	if _, err := world.database.CreateContainer(ctx, properties, options); err != nil {
		return nil, err
	}
	return world.database.NewContainer(properties.ID)
}

// setClockMs moves the server's virtual clock to an instant in epoch milliseconds.
func (world *World) setClockMs(instant int64) error {
	url := strings.TrimSuffix(world.endpoint, "/") + "/_bolide/clock"
	request, err := http.NewRequest(http.MethodPut, url, strings.NewReader(fmt.Sprintf(`{"setMs":%d}`, instant)))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+world.key)
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	body, _ := io.ReadAll(answer.Body)
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("moving the clock: %d %s", answer.StatusCode, body)
	}
	return nil
}

// setClockSeconds moves the clock to the first millisecond of a second.
func (world *World) setClockSeconds(instant int64) error {
	return world.setClockMs(instant * 1000)
}

// unique returns an id that no other check and no other run uses.
func unique(label string) string {
	return fmt.Sprintf("%s-go-%d-%d", label, os.Getpid(), next.Add(1))
}

// withContent asks for the stored item in the answer to a write, which the SDK leaves out by default.
func withContent() *azcosmos.ItemOptions {
	return &azcosmos.ItemOptions{EnableContentResponseOnWrite: true}
}

// add creates an item in partition `pk` and returns it as the server stored it.
func add(container *azcosmos.ContainerClient, item Item) (Item, error) {
	return addUnder(container, keyOf(item["pk"]), item)
}

func addUnder(container *azcosmos.ContainerClient, key azcosmos.PartitionKey, item Item) (Item, error) {
	answer, err := container.CreateItem(ctx, key, encoded(item), withContent())
	if err != nil {
		return nil, err
	}
	return decoded(answer.Value)
}

// read returns an item as the server stores it.
func read(container *azcosmos.ContainerClient, pk, id string) (Item, error) {
	answer, err := container.ReadItem(ctx, keyOf(pk), id, nil)
	if err != nil {
		return nil, err
	}
	return decoded(answer.Value)
}

// keyOf returns the partition key of these levels, which are strings.
func keyOf(levels ...any) azcosmos.PartitionKey {
	key := azcosmos.NewPartitionKey()
	for _, level := range levels {
		key = key.AppendString(fmt.Sprint(level))
	}
	return key
}

// rows returns every row of a query; a page size of 0 leaves the size to the server.
func rows(container *azcosmos.ContainerClient, query string, key azcosmos.PartitionKey, size int32, parameters Item) ([]any, error) {
	options := &azcosmos.QueryOptions{PageSizeHint: size}
	for name, value := range parameters {
		options.QueryParameters = append(options.QueryParameters, azcosmos.QueryParameter{Name: name, Value: value})
	}
	found := []any{}
	for pages := container.NewQueryItemsPager(query, key, options); pages.More(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, item := range page.Items {
			var row any
			if err := json.Unmarshal(item, &row); err != nil {
				return nil, err
			}
			found = append(found, row)
		}
	}
	return found, nil
}

func encoded(value any) []byte {
	return []byte(text(value))
}

func decoded(body []byte) (Item, error) {
	item := Item{}
	return item, json.NewDecoder(bytes.NewReader(body)).Decode(&item)
}
