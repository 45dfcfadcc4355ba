// Queries of every kind: each one on one range and on five, in pages of one, of three and of any size. The SDK merges nothing, so what needs a merge
// over all keys is refused on both.

package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// Kinds is the file that the tours of several languages share; it describes its members.
type Kinds struct {
	Containers map[string]struct {
		Paths            []string                    `json:"paths"`
		CompositeIndexes [][]azcosmos.CompositeIndex `json:"compositeIndexes"`
		Items            []Item                      `json:"items"`
	} `json:"containers"`
	Queries []Kind `json:"queries"`
}

// Kind is one query with its rows.
type Kind struct {
	Name       string   `json:"name"`
	Container  string   `json:"container"`
	Text       string   `json:"text"`
	Parameters Item     `json:"parameters"`
	Key        []any    `json:"key"`
	Needs      []string `json:"needs"`
	Ordered    bool     `json:"ordered"`
	Take       int      `json:"take"`
	Rows       []any    `json:"rows"`
}

var pageSizes = []int32{1, 3, 0}

func checkKinds(tour *Tour, path string) {
	kinds := Kinds{}
	tour.check("file of queries is read", func(*World) error {
		body, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return json.Unmarshal(body, &kinds)
	})
	for _, place := range []string{"one range", "five ranges"} {
		stores := map[string]*azcosmos.ContainerClient{}
		wide := place == "five ranges"
		tour.check("items for queries of every kind are stored on "+place, func(world *World) error {
			return kinds.store(world, wide, stores)
		})
		for _, kind := range kinds.Queries {
			if len(kind.Needs) > 0 {
				tour.check(fmt.Sprintf("query %s is refused with 400, %s", kind.Name, place), func(*World) error {
					_, err := rows(stores[kind.Container], kind.Text, keyOf(), 0, kind.Parameters)
					return refused(400, err)
				})
				continue
			}
			tour.check(fmt.Sprintf("query %s, %s", kind.Name, place), func(*World) error {
				return kind.run(stores[kind.Container])
			})
		}
	}
}

// store creates the containers of the file with their items.
func (kinds *Kinds) store(world *World, wide bool, stores map[string]*azcosmos.ContainerClient) error {
	for name, shape := range kinds.Containers {
		container, err := world.container(name, wide, func(properties *azcosmos.ContainerProperties) {
			properties.PartitionKeyDefinition.Paths = shape.Paths
			properties.IndexingPolicy = &azcosmos.IndexingPolicy{
				Automatic:        true,
				IndexingMode:     azcosmos.IndexingModeConsistent,
				IncludedPaths:    []azcosmos.IncludedPath{{Path: "/*"}},
				CompositeIndexes: shape.CompositeIndexes,
			}
		})
		if err != nil {
			return err
		}
		stores[name] = container
		for _, item := range shape.Items {
			levels := []any{}
			for _, path := range shape.Paths {
				levels = append(levels, item[path[1:]])
			}
			if _, err := addUnder(container, keyOf(levels...), item); err != nil {
				return err
			}
		}
	}
	return nil
}

// run asks the query in every page size and compares the rows.
func (kind *Kind) run(container *azcosmos.ContainerClient) error {
	for _, size := range pageSizes {
		found, err := rows(container, kind.Text, keyOf(kind.Key...), size, kind.Parameters)
		if err != nil {
			return err
		}
		if err := kind.compare(found, fmt.Sprintf("rows in pages of %d", size)); err != nil {
			return err
		}
	}
	return nil
}

// compare expects the rows in their order, or in any, or any `take` of them.
func (kind *Kind) compare(found []any, what string) error {
	if kind.Take > 0 {
		known, distinct := map[string]bool{}, map[string]bool{}
		for _, row := range kind.Rows {
			known[text(row)] = true
		}
		for _, row := range found {
			if known[text(row)] {
				distinct[text(row)] = true
			}
		}
		return equal([]int{len(distinct), len(found)}, []int{kind.Take, kind.Take}, what)
	}
	if kind.Ordered {
		return equal(found, kind.Rows, what)
	}
	return equal(sorted(found), sorted(kind.Rows), what)
}
