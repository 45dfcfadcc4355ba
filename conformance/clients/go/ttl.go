// Time to live: items expire at their exact second for every kind of request.
//
// The server's clock is virtual, so a test of thirty days takes milliseconds. An item's second is `_ts` plus its time to
// live; it is live at the last millisecond before that second and gone from the second on.

package main

import (
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

const thirtyDays = 30 * 24 * 3600

func checkTTL(tour *Tour) {
	tour.check("item ends at its exact second for every kind of request", itemEndsAtItsSecond)
	tour.check("own ttl of an item outweighs the default", ownTTLOutweighs)
	tour.check("write renews an item and a read does not", writeRenews)
	tour.check("id of an expired item is free", idIsFree)
	tour.check("items end on every range at the same second", itemsEndOnEveryRange)
	tour.check("invalid ttl of an item is refused with 400", invalidTTLIsRefused)
}

func itemEndsAtItsSecond(world *World) error {
	container, err := world.container("ends", false, defaultTTL(100))
	if err != nil {
		return err
	}
	born, err := birth(container, Item{"id": "a", "pk": "p", "n": 1})
	if err != nil {
		return err
	}
	moved := world.setClockMs((born+100)*1000 - 1)
	_, before := read(container, "p", "a")
	if err := first(moved, before, seen(container, "p", "a")); err != nil {
		return err
	}
	moved = world.setClockSeconds(born + 100)
	patch := azcosmos.PatchOperations{}
	patch.AppendSet("/n", 2)
	_, atRead := read(container, "p", "a")
	_, atReplace := container.ReplaceItem(ctx, keyOf("p"), "a", encoded(Item{"id": "a", "pk": "p"}), nil)
	_, atPatch := container.PatchItem(ctx, keyOf("p"), "a", patch, nil)
	_, atDelete := container.DeleteItem(ctx, keyOf("p"), "a", nil)
	return first(moved, refused(404, atRead), refused(404, atReplace), refused(404, atPatch), refused(404, atDelete), seen(container, "p"))
}

func ownTTLOutweighs(world *World) error {
	container, err := world.container("own", false, defaultTTL(100))
	if err != nil {
		return err
	}
	born, err := birth(container, Item{"id": "default", "pk": "p"})
	if err != nil {
		return err
	}
	for id, ttl := range map[string]int{"shorter": 10, "longer": thirtyDays, "never": -1} {
		if _, err := add(container, Item{"id": id, "pk": "p", "ttl": ttl}); err != nil {
			return err
		}
	}
	for _, step := range []struct {
		age   int64
		alive []any
	}{
		{9, []any{"default", "longer", "never", "shorter"}},
		{10, []any{"default", "longer", "never"}},
		{100, []any{"longer", "never"}},
		{thirtyDays - 1, []any{"longer", "never"}},
		{thirtyDays, []any{"never"}},
	} {
		if err := first(world.setClockSeconds(born+step.age), seen(container, "p", step.alive...)); err != nil {
			return fmt.Errorf("after %d s: %w", step.age, err)
		}
	}
	return nil
}

func writeRenews(world *World) error {
	container, err := world.container("renew", false, defaultTTL(100))
	if err != nil {
		return err
	}
	born, err := birth(container, Item{"id": "written", "pk": "p"})
	if err != nil {
		return err
	}
	_, added := add(container, Item{"id": "read", "pk": "p"})
	moved := world.setClockSeconds(born + 60)
	_, replaced := container.ReplaceItem(ctx, keyOf("p"), "written", encoded(Item{"id": "written", "pk": "p"}), nil)
	_, readAgain := read(container, "p", "read")
	if err := first(added, moved, replaced, readAgain); err != nil {
		return err
	}
	if err := first(world.setClockSeconds(born+100), seen(container, "p", "written")); err != nil {
		return err
	}
	return first(world.setClockSeconds(born+160), seen(container, "p"))
}

func idIsFree(world *World) error {
	container, err := world.container("free", false, defaultTTL(10))
	if err != nil {
		return err
	}
	born, err := birth(container, Item{"id": "a", "pk": "p"})
	if err != nil {
		return err
	}
	_, added := add(container, Item{"id": "b", "pk": "p"})
	moved := world.setClockSeconds(born + 10)
	_, created := add(container, Item{"id": "a", "pk": "p"})
	upserted, err := container.UpsertItem(ctx, keyOf("p"), encoded(Item{"id": "b", "pk": "p"}), nil)
	if err := first(added, moved, created, err); err != nil {
		return err
	}
	return equal(upserted.RawResponse.StatusCode, 201, "status of the upsert")
}

func itemsEndOnEveryRange(world *World) error {
	container, err := world.container("wide end", true, defaultTTL(100))
	if err != nil {
		return err
	}
	born := int64(0)
	for n := range 20 {
		if born, err = birth(container, Item{"id": fmt.Sprintf("i%d", n), "pk": fmt.Sprintf("p%d", n)}); err != nil {
			return err
		}
	}
	end := (born + 100) * 1000
	for _, step := range []struct {
		instant int64
		count   int
	}{{end - 1, 20}, {end, 0}} {
		if err := world.setClockMs(step.instant); err != nil {
			return err
		}
		found, err := rows(container, "SELECT VALUE c.id FROM c", keyOf(), 0, nil)
		if err := first(err, equal(len(found), step.count, "items")); err != nil {
			return err
		}
	}
	return nil
}

func invalidTTLIsRefused(world *World) error {
	container, err := world.container("invalid", false, defaultTTL(-1))
	if err != nil {
		return err
	}
	for _, ttl := range []any{0, -2, nil, "10", 1.5, true, int64(1) << 31} {
		_, err := add(container, Item{"id": "a", "pk": "p", "ttl": ttl})
		if err := refused(400, err); err != nil {
			return fmt.Errorf("ttl %v: %w", ttl, err)
		}
	}
	return nil
}

// birth creates an item and returns the second in which it was written.
func birth(container *azcosmos.ContainerClient, item Item) (int64, error) {
	stored, err := add(container, item)
	if err != nil {
		return 0, err
	}
	second, ok := stored["_ts"].(float64)
	if !ok {
		return 0, fmt.Errorf("no _ts in %s", text(stored))
	}
	return int64(second), nil
}

// seen expects that a query and a count in a partition show exactly these items.
func seen(container *azcosmos.ContainerClient, pk string, ids ...any) error {
	found, err := rows(container, "SELECT VALUE c.id FROM c", keyOf(pk), 0, nil)
	if err != nil {
		return err
	}
	count, err := rows(container, "SELECT VALUE COUNT(1) FROM c", keyOf(pk), 0, nil)
	return first(err, equal(sorted(found), sorted(ids), "items"), equal(count, []int{len(ids)}, "count"))
}
