// The tour of Bolide with MongoDB's driver for Go:
// `bolide-mongo-go-tour --uri URI --endpoint URL --key KEY --certificate FILE --tables DIR`.

package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	uri := flag.String("uri", "", "the connection string of most checks")
	endpoint := flag.String("endpoint", "", "the server's address for the admin API")
	key := flag.String("key", "", "the account's key")
	certificate := flag.String("certificate", "", "a file with the server's certificate")
	tables := flag.String("tables", "", "the folder of the data that the tours of all languages share")
	flag.Parse()
	world, err := openWorld(*uri, *endpoint, *key, *certificate, *tables)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	tour := &Tour{world: world}
	connections(tour)
	documents(tour)
	if err := sharedTables(tour); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	expiry(tour)
	transactions(tour)
	if tour.finish() > 0 {
		os.Exit(1)
	}
}
