// The tour of Bolide with azcosmos: `bolide-go-tour --endpoint URL --key KEY --kinds FILE`.
//
//	resources   databases, containers, throughput
//	items       writes, reads, conditions, patches, batches, reading many, change feed
//	kinds       queries of every kind, on one range and on several, in pages of several sizes
//	ttl         items expire at their exact second, with the clock moved by hand
//
// The SDK sends queries as they are and merges nothing, so what needs merging over several ranges is refused there; the
// tour expects exactly that. What the SDK has no call for (bulk, moving a property in a patch) is not here.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	endpoint := flag.String("endpoint", "", "base URL, for example http://127.0.0.1:8081/")
	key := flag.String("key", "", "the account key")
	kinds := flag.String("kinds", "", "path of tour_queries.json")
	flag.Parse()
	world, err := openWorld(*endpoint, *key)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	tour := &Tour{world: world}
	checkResources(tour)
	checkItems(tour)
	checkKinds(tour, *kinds)
	checkTTL(tour)
	if err := world.close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if tour.finish() > 0 {
		os.Exit(1)
	}
}
