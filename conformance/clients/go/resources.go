// Databases, containers and throughput.

package main

import (
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

func checkResources(tour *Tour) {
	tour.check("wrong key is refused with 401", wrongKeyIsRefused)
	tour.check("database can be read, queried and deleted", databaseLives)
	tour.check("second database and container of the same name are refused with 409", namesAreUnique)
	tour.check("container echoes its partition key and default ttl, and both can be replaced", containerEchoes)
	tour.check("missing database and container are 404", missingIsNotFound)
	tour.check("throughput can be read and replaced", throughputIsReplaced)
	tour.check("throughput decides the number of feed ranges", throughputDecidesRanges)
}

func wrongKeyIsRefused(world *World) error {
	credential, err := azcosmos.NewKeyCredential("d3JvbmcgYWNjb3VudCBrZXk=")
	if err != nil {
		return err
	}
	stranger, err := azcosmos.NewClientWithKey(world.endpoint, credential, nil)
	if err != nil {
		return err
	}
	_, err = stranger.CreateDatabase(ctx, azcosmos.DatabaseProperties{ID: unique("stranger")}, nil)
	return refused(401, err)
}

func databaseLives(world *World) error {
	id := unique("shelf")
	if _, err := world.client.CreateDatabase(ctx, azcosmos.DatabaseProperties{ID: id}, nil); err != nil {
		return err
	}
	database, err := world.client.NewDatabase(id)
	if err != nil {
		return err
	}
	read, err := database.Read(ctx, nil)
	if err != nil {
		return err
	}
	pager := world.client.NewQueryDatabasesPager("SELECT * FROM root r WHERE r.id = @id", &azcosmos.QueryDatabasesOptions{
		QueryParameters: []azcosmos.QueryParameter{{Name: "@id", Value: id}},
	})
	found, err := pager.NextPage(ctx)
	if err != nil {
		return err
	}
	if _, err := database.Delete(ctx, nil); err != nil {
		return err
	}
	_, gone := database.Read(ctx, nil)
	return first(
		equal(read.DatabaseProperties.ID, id, "read"),
		equal(len(found.Databases), 1, "queried"),
		refused(404, gone),
	)
}

func namesAreUnique(world *World) error {
	_, database := world.client.CreateDatabase(ctx, azcosmos.DatabaseProperties{ID: world.database.ID()}, nil)
	container, err := world.container("twice", false, nil)
	if err != nil {
		return err
	}
	_, err = world.container("twice", false, func(properties *azcosmos.ContainerProperties) { properties.ID = container.ID() })
	return first(refused(409, database), refused(409, err))
}

func containerEchoes(world *World) error {
	container, err := world.container("echo", false, defaultTTL(3600))
	if err != nil {
		return err
	}
	created, err := container.Read(ctx, nil)
	if err != nil {
		return err
	}
	properties := *created.ContainerProperties
	never := int32(-1)
	properties.DefaultTimeToLive = &never
	replaced, err := container.Replace(ctx, properties, nil)
	if err != nil {
		return err
	}
	return first(
		equal(created.ContainerProperties.PartitionKeyDefinition, Item{"kind": "Hash", "paths": []string{"/pk"}, "version": 2}, "key"),
		equal(created.ContainerProperties.DefaultTimeToLive, 3600, "default ttl"),
		equal(replaced.ContainerProperties.DefaultTimeToLive, -1, "replaced default ttl"),
	)
}

func missingIsNotFound(world *World) error {
	database, err := world.client.NewDatabase("nowhere")
	if err != nil {
		return err
	}
	container, err := world.database.NewContainer("nowhere")
	if err != nil {
		return err
	}
	_, missingDatabase := database.Read(ctx, nil)
	_, missingContainer := container.Read(ctx, nil)
	_, missingItem := read(container, "p", "a")
	return first(refused(404, missingDatabase), refused(404, missingContainer), refused(404, missingItem))
}

func throughputIsReplaced(world *World) error {
	container, err := world.container("offer", true, nil)
	if err != nil {
		return err
	}
	for _, expected := range []int32{fiveRanges, 29000} {
		if _, err := container.ReplaceThroughput(ctx, azcosmos.NewManualThroughputProperties(expected), nil); err != nil {
			return err
		}
		answer, err := container.ReadThroughput(ctx, nil)
		if err != nil {
			return err
		}
		found, _ := answer.ThroughputProperties.ManualThroughput()
		if err := equal(found, expected, "throughput"); err != nil {
			return err
		}
	}
	return nil
}

func throughputDecidesRanges(world *World) error {
	for wide, expected := range map[bool]int{false: 1, true: 5} {
		container, err := world.container("ranges", wide, nil)
		if err != nil {
			return err
		}
		ranges, err := container.ReadFeedRanges(ctx, nil)
		if err != nil {
			return err
		}
		if err := equal(len(ranges), expected, fmt.Sprintf("ranges, wide %t", wide)); err != nil {
			return err
		}
	}
	return nil
}

// defaultTTL sets a container's default time to live, in seconds.
func defaultTTL(seconds int32) func(*azcosmos.ContainerProperties) {
	return func(properties *azcosmos.ContainerProperties) { properties.DefaultTimeToLive = &seconds }
}
