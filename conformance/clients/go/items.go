// Items: writes, reads, conditions, patches, batches, reading many at once, the change feed.

package main

import (
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

func checkItems(tour *Tour) {
	tour.check("created item is read back with its system properties", createdItemIsReadBack)
	tour.check("second item of the same id is refused with 409", secondItemIsRefused)
	tour.check("upsert creates with 201 and then replaces with 200", upsertCreatesThenReplaces)
	tour.check("stale etag is refused with 412 and changes nothing", staleEtagIsRefused)
	tour.check("patch applies every operation in order, if its condition holds", patchApplies)
	tour.check("deleted item is 404 and its id is free", deletedItemIsGone)
	tour.check("batch writes everything", batchWritesEverything)
	tour.check("batch with a failing operation writes nothing", failingBatchWritesNothing)
	tour.check("several items are read at once over five ranges", manyAreRead)
	tour.check("change feed shows the latest version of every item of five ranges", changeFeedShowsLatest)
	tour.check("malformed query is refused with 400", malformedQueryIsRefused)
}

func createdItemIsReadBack(world *World) error {
	container, err := world.container("items", false, nil)
	if err != nil {
		return err
	}
	body := Item{"id": "naïve-日本-🎉 a+b", "pk": "p", "whole": 7, "part": 0.5, "none": nil, "nested": Item{"list": []any{1, "x"}}}
	created, err := add(container, body)
	if err != nil {
		return err
	}
	found, err := read(container, "p", "naïve-日本-🎉 a+b")
	if err != nil {
		return err
	}
	for _, property := range []string{"_rid", "_self", "_etag", "_ts"} {
		if found[property] == nil {
			return fmt.Errorf("no %s in %s", property, text(found))
		}
	}
	return first(equal(found, created, "read item"), equal(userPart(found), body, "user properties"))
}

func secondItemIsRefused(world *World) error {
	container, err := world.container("items", false, nil)
	if err != nil {
		return err
	}
	_, once := add(container, Item{"id": "a", "pk": "p"})
	_, twice := add(container, Item{"id": "a", "pk": "p"})
	_, elsewhere := add(container, Item{"id": "a", "pk": "another partition"})
	return first(once, refused(409, twice), elsewhere)
}

func upsertCreatesThenReplaces(world *World) error {
	container, err := world.container("items", false, nil)
	if err != nil {
		return err
	}
	for v, status := range []int{201, 200} {
		answer, err := container.UpsertItem(ctx, keyOf("p"), encoded(Item{"id": "a", "pk": "p", "v": v}), nil)
		if err != nil {
			return err
		}
		if err := equal(answer.RawResponse.StatusCode, status, "status"); err != nil {
			return err
		}
	}
	found, err := read(container, "p", "a")
	return first(err, equal(found["v"], 1, "v"))
}

func staleEtagIsRefused(world *World) error {
	container, err := world.container("items", false, nil)
	if err != nil {
		return err
	}
	created, err := add(container, Item{"id": "a", "pk": "p", "v": 1})
	if err != nil {
		return err
	}
	stale := azcore.ETag(created["_etag"].(string))
	when := &azcosmos.ItemOptions{IfMatchEtag: &stale}
	body := func(v int) []byte { return encoded(Item{"id": "a", "pk": "p", "v": v}) }
	_, fresh := container.ReplaceItem(ctx, keyOf("p"), "a", body(2), when)
	_, replaced := container.ReplaceItem(ctx, keyOf("p"), "a", body(3), when)
	_, upserted := container.UpsertItem(ctx, keyOf("p"), body(3), when)
	_, deleted := container.DeleteItem(ctx, keyOf("p"), "a", when)
	found, err := read(container, "p", "a")
	return first(fresh, refused(412, replaced), refused(412, upserted), refused(412, deleted), err, equal(found["v"], 2, "v"))
}

func patchApplies(world *World) error {
	container, err := world.container("items", false, nil)
	if err != nil {
		return err
	}
	if _, err := add(container, Item{"id": "a", "pk": "p", "keep": 1, "gone": 1, "n": 3, "list": []any{"x"}}); err != nil {
		return err
	}
	patch := azcosmos.PatchOperations{}
	patch.AppendAdd("/list/-", "y")
	patch.AppendSet("/fresh", Item{"deep": true})
	patch.AppendReplace("/keep", 2)
	patch.AppendRemove("/gone")
	patch.AppendIncrement("/n", 4)
	patch.SetCondition("FROM c WHERE c.n = 3")
	if _, err := container.PatchItem(ctx, keyOf("p"), "a", patch, nil); err != nil {
		return err
	}
	_, again := container.PatchItem(ctx, keyOf("p"), "a", patch, nil)
	found, err := read(container, "p", "a")
	expected := Item{"id": "a", "pk": "p", "keep": 2, "n": 7, "list": []any{"x", "y"}, "fresh": Item{"deep": true}}
	return first(refused(412, again), err, equal(userPart(found), expected, "patched item"))
}

func deletedItemIsGone(world *World) error {
	container, err := world.container("items", false, nil)
	if err != nil {
		return err
	}
	_, created := add(container, Item{"id": "a", "pk": "p"})
	_, deleted := container.DeleteItem(ctx, keyOf("p"), "a", nil)
	_, gone := read(container, "p", "a")
	_, twice := container.DeleteItem(ctx, keyOf("p"), "a", nil)
	_, again := add(container, Item{"id": "a", "pk": "p"})
	return first(created, deleted, refused(404, gone), refused(404, twice), again)
}

func batchWritesEverything(world *World) error {
	container, err := world.container("batch", false, nil)
	if err != nil {
		return err
	}
	for _, id := range []string{"replaced", "deleted", "patched"} {
		if _, err := add(container, Item{"id": id, "pk": "p", "v": 1}); err != nil {
			return err
		}
	}
	batch := container.NewTransactionalBatch(keyOf("p"))
	patch := azcosmos.PatchOperations{}
	patch.AppendSet("/v", 2)
	batch.CreateItem(encoded(Item{"id": "created", "pk": "p", "v": 2}), nil)
	batch.UpsertItem(encoded(Item{"id": "upserted", "pk": "p", "v": 2}), nil)
	batch.ReplaceItem("replaced", encoded(Item{"id": "replaced", "pk": "p", "v": 2}), nil)
	batch.PatchItem("patched", patch, nil)
	batch.DeleteItem("deleted", nil)
	batch.ReadItem("created", nil)
	answer, err := container.ExecuteTransactionalBatch(ctx, batch, nil)
	if err != nil {
		return err
	}
	found, err := rows(container, "SELECT VALUE c.id FROM c WHERE c.v = 2", keyOf("p"), 0, nil)
	return first(
		equal(answer.Success, true, "success"),
		equal(statuses(answer), []int{201, 201, 200, 200, 204, 200}, "statuses"),
		err,
		equal(sorted(found), []string{"created", "patched", "replaced", "upserted"}, "items after the batch"),
	)
}

func failingBatchWritesNothing(world *World) error {
	container, err := world.container("batch", false, nil)
	if err != nil {
		return err
	}
	batch := container.NewTransactionalBatch(keyOf("p"))
	batch.CreateItem(encoded(Item{"id": "a", "pk": "p"}), nil)
	batch.ReplaceItem("missing", encoded(Item{"id": "missing", "pk": "p"}), nil)
	batch.CreateItem(encoded(Item{"id": "b", "pk": "p"}), nil)
	answer, err := container.ExecuteTransactionalBatch(ctx, batch, nil)
	if err != nil {
		return err
	}
	_, gone := read(container, "p", "a")
	return first(
		equal(answer.Success, false, "success"),
		equal(statuses(answer), []int{424, 404, 424}, "statuses"),
		refused(404, gone),
	)
}

func manyAreRead(world *World) error {
	container, err := world.container("many", true, nil)
	if err != nil {
		return err
	}
	wanted := []azcosmos.ItemIdentity{{ID: "missing", PartitionKey: keyOf("p0")}}
	expected := []any{}
	for n := range 20 {
		id, pk := fmt.Sprintf("i%02d", n), fmt.Sprintf("p%d", n)
		if _, err := add(container, Item{"id": id, "pk": pk}); err != nil {
			return err
		}
		wanted = append(wanted, azcosmos.ItemIdentity{ID: id, PartitionKey: keyOf(pk)})
		expected = append(expected, id)
	}
	answer, err := container.ReadManyItems(ctx, wanted, nil)
	if err != nil {
		return err
	}
	found, err := idsOf(answer.Items)
	return first(err, equal(sorted(found), expected, "ids"))
}

func changeFeedShowsLatest(world *World) error {
	container, err := world.container("feed", true, nil)
	if err != nil {
		return err
	}
	expected := []any{}
	for n := range 20 {
		id := fmt.Sprintf("i%02d", n)
		if _, err := add(container, Item{"id": id, "pk": id, "v": 1}); err != nil {
			return err
		}
		expected = append(expected, id)
	}
	if _, err := container.UpsertItem(ctx, keyOf("i07"), encoded(Item{"id": "i07", "pk": "i07", "v": 2}), nil); err != nil {
		return err
	}
	ranges, err := container.ReadFeedRanges(ctx, nil)
	if err != nil {
		return err
	}
	found := []any{}
	for _, feedRange := range ranges {
		ids, err := changes(container, feedRange)
		if err != nil {
			return err
		}
		found = append(found, ids...)
	}
	return equal(sorted(found), expected, "ids of the changes")
}

// changes reads the change feed of a range from its beginning until nothing is new.
func changes(container *azcosmos.ContainerClient, feedRange azcosmos.FeedRange) ([]any, error) {
	found := []any{}
	options := &azcosmos.ChangeFeedOptions{FeedRange: &feedRange, MaxItemCount: 3}
	for {
		page, err := container.ReadChangeFeed(ctx, options)
		if err != nil {
			return nil, err
		}
		if page.Count == 0 {
			return found, nil
		}
		ids, err := idsOf(page.Items)
		if err != nil {
			return nil, err
		}
		found = append(found, ids...)
		options = &azcosmos.ChangeFeedOptions{Continuation: &page.ContinuationToken, MaxItemCount: 3}
	}
}

func malformedQueryIsRefused(world *World) error {
	for _, wide := range []bool{false, true} {
		container, err := world.container("malformed", wide, nil)
		if err != nil {
			return err
		}
		_, err = rows(container, "SELEKT *", keyOf(), 0, nil)
		if err := refused(400, err); err != nil {
			return err
		}
	}
	return nil
}

func statuses(answer azcosmos.TransactionalBatchResponse) []int32 {
	found := []int32{}
	for _, result := range answer.OperationResults {
		found = append(found, result.StatusCode)
	}
	return found
}

func idsOf(items [][]byte) ([]any, error) {
	ids := []any{}
	for _, body := range items {
		item, err := decoded(body)
		if err != nil {
			return nil, err
		}
		ids = append(ids, item["id"])
	}
	return ids, nil
}

// userPart leaves out the system properties.
func userPart(item Item) Item {
	user := Item{}
	for name, value := range item {
		if name[0] != '_' {
			user[name] = value
		}
	}
	return user
}
