package tokens

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	bolide "github.com/bolide-db/bolide-go"
)

const day = 24 * time.Hour

func TestItemLivesForThirtyDays(t *testing.T) {
	db := bolide.Start(t)
	tokens := container(t, db)
	ada := azcosmos.NewPartitionKeyString("ada")
	item := []byte(`{"id": "t1", "user": "ada", "ttl": 2592000}`)
	if _, err := tokens.CreateItem(context.Background(), ada, item, nil); err != nil {
		t.Fatal(err)
	}

	db.Clock.Advance(29 * day)
	if _, err := tokens.ReadItem(context.Background(), ada, "t1", nil); err != nil {
		t.Fatal(err)
	}
	db.Clock.Advance(1 * day)
	_, err := tokens.ReadItem(context.Background(), ada, "t1", nil)
	var refusal *azcore.ResponseError
	if !errors.As(err, &refusal) || refusal.StatusCode != http.StatusNotFound {
		t.Fatalf("expected 404, got %v", err)
	}
}

// container creates a container whose items may have a ttl of their own.
func container(t *testing.T, db *bolide.Server) *azcosmos.ContainerClient {
	t.Helper()
	client, err := azcosmos.NewClientFromConnectionString(db.ConnectionString, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.CreateDatabase(context.Background(), azcosmos.DatabaseProperties{ID: "retention"}, nil); err != nil {
		t.Fatal(err)
	}
	database, err := client.NewDatabase("retention")
	if err != nil {
		t.Fatal(err)
	}
	onlyOwn := int32(-1)
	properties := azcosmos.ContainerProperties{
		ID:                     "tokens",
		PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"/user"}, Version: 2},
		DefaultTimeToLive:      &onlyOwn,
	}
	if _, err := database.CreateContainer(context.Background(), properties, nil); err != nil {
		t.Fatal(err)
	}
	tokens, err := database.NewContainer("tokens")
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}
