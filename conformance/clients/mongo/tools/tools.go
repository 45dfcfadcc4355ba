//go:build tools

// The programs of mongo-tools that are tried against Bolide, so that their versions stand in go.sum.

package tools

import (
	_ "github.com/mongodb/mongo-tools/mongodump"
	_ "github.com/mongodb/mongo-tools/mongoexport"
	_ "github.com/mongodb/mongo-tools/mongoimport"
	_ "github.com/mongodb/mongo-tools/mongorestore"
)
