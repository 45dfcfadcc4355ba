// Package bolide starts the Bolide database for tests, with a clock that the test moves.
//
//	func TestTokensExpire(t *testing.T) {
//		db := bolide.Start(t)
//		// … a client of Cosmos DB with db.Endpoint and db.Key, or one of MongoDB with db.MongoURI
//		db.Clock.Advance(30 * 24 * time.Hour)
//	}
//
// A server keeps its data in memory, listens on free ports of 127.0.0.1 and has a virtual clock, unless options say otherwise. It ends with the test,
// and never outlives the process that started it. The package needs nothing but the standard library; FindBinary says where the binary is looked for.
package bolide

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"
)

// Server is a running server. It may be used from several goroutines.
type Server struct {
	// Endpoint is such as http://127.0.0.1:41234, for clients of Cosmos DB.
	Endpoint string
	// HTTPSEndpoint is the same port with TLS, under a certificate that the server made.
	HTTPSEndpoint string
	// Key is the account key, base64.
	Key string
	// ConnectionString is for clients of Cosmos DB.
	ConnectionString string
	// MongoURI is for MongoDB's drivers; empty if the server was started with --no-mongo.
	MongoURI string
	// PID is the id of the process.
	PID int
	// Clock is the clock of the server.
	Clock *Clock

	admin   *admin
	process *process
}

// Start starts a server for a test, which it ends with. A server that does not start fails the test at once; a request of the server's methods, or of its
// clock's, that fails marks the test as failed and returns its error.
func Start(t testing.TB, options ...Option) *Server {
	t.Helper()
	server, err := run(func(err error) { t.Helper(); t.Error(err) }, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	return server
}

// Run starts a server without a test, for example in TestMain. The caller calls Stop.
func Run(options ...Option) (*Server, error) {
	return run(func(error) {}, options)
}

func run(report func(error), options []Option) (*Server, error) {
	chosen := settings{virtualClock: true, key: wellKnownKey, startTimeout: 30 * time.Second}
	for _, option := range options {
		option(&chosen)
	}
	process, ready, err := startProcess(&chosen)
	if err != nil {
		return nil, err
	}
	requests := newAdmin(ready.Cosmos, chosen.key, report)
	server := &Server{
		Endpoint:         ready.Cosmos,
		HTTPSEndpoint:    ready.CosmosTLS,
		Key:              chosen.key,
		ConnectionString: fmt.Sprintf("AccountEndpoint=%s/;AccountKey=%s;", ready.Cosmos, chosen.key),
		PID:              process.command.Process.Pid,
		Clock:            &Clock{requests},
		admin:            requests,
		process:          process,
	}
	if _, address, found := strings.Cut(ready.Mongo, "://"); found {
		server.MongoURI = fmt.Sprintf("mongodb://localhost:%s@%s/?replicaSet=globaldb", url.QueryEscape(chosen.key), address)
	}
	return server, nil
}

// Purge removes what has expired in a container, and returns how many items that were.
//
// Clients cannot tell the difference, because expired items are absent before, too. With a virtual clock nothing else removes them.
func (server *Server) Purge(database, container string) (int, error) {
	var answer struct {
		Purged int `json:"purged"`
	}
	path := fmt.Sprintf("dbs/%s/colls/%s/purge", url.PathEscape(database), url.PathEscape(container))
	err := server.admin.request("POST", path, map[string]any{"mode": "force"}, &answer)
	return answer.Purged, err
}

// Reset removes all databases with everything in them. Clients stay connected.
func (server *Server) Reset() error {
	return server.admin.request("POST", "reset", map[string]any{}, nil)
}

// Log returns the end of what the server wrote to standard error, also after it has ended.
func (server *Server) Log() string {
	return server.process.log()
}

// Stop stops the server: running requests end, a data directory is complete. It may be called again. It returns an error if the server did not end with
// status 0; it has ended in any case.
func (server *Server) Stop() error {
	return server.process.stop()
}

// Clock reads and moves the clock of a server. It counts milliseconds and stands still until it is moved. Everything in the server follows it: expiry,
// _ts, TTL indexes.
type Clock struct {
	admin *admin
}

type instant struct {
	NowMs int64 `json:"nowMs"`
}

// Now returns the time of the server, in UTC.
func (clock *Clock) Now() (time.Time, error) {
	var now instant
	err := clock.admin.request("GET", "clock", nil, &now)
	return time.UnixMilli(now.NowMs).UTC(), err
}

// Advance moves the clock forward. It returns an error for a time that is negative or not a whole number of milliseconds, or if the server runs on the
// system's clock.
func (clock *Clock) Advance(by time.Duration) error {
	if by < 0 {
		return clock.admin.failed(fmt.Errorf("Advance: a negative time; Set also moves the clock back. value=`%s`", by))
	}
	if by%time.Millisecond != 0 {
		return clock.admin.failed(fmt.Errorf("Advance: the clock counts whole milliseconds. value=`%s`", by))
	}
	return clock.admin.request("PUT", "clock", map[string]any{"advanceMs": by.Milliseconds()}, nil)
}

// Set moves the clock to an instant, forward or back, without its part of a millisecond. When it is moved back, time stands still for everything that is
// stored until it has caught up. It returns an error if the server runs on the system's clock.
func (clock *Clock) Set(to time.Time) error {
	return clock.admin.request("PUT", "clock", map[string]any{"setMs": to.UnixMilli()}, nil)
}

// ErrNoBinary is the error if there is no binary, or if what was named is not a file.
var ErrNoBinary = errors.New("no bolide binary")
