package bolide

import "time"

// Option changes how a server is started. Variables of the environment that begin with BOLIDE_ are not passed on: options come only from here.
type Option func(*settings)

type settings struct {
	dataDir      string
	virtualClock bool
	clockStart   time.Time
	key          string
	args         []string
	env          []string
	binary       string
	startTimeout time.Duration
}

// DataDir is where the server keeps its data; without one everything is in memory.
func DataDir(directory string) Option {
	return func(chosen *settings) { chosen.dataDir = directory }
}

// VirtualClock is the first instant of the virtual clock; by default it begins now.
func VirtualClock(start time.Time) Option {
	return func(chosen *settings) { chosen.virtualClock, chosen.clockStart = true, start }
}

// SystemClock lets the server run on the system's clock, which nobody moves.
func SystemClock() Option {
	return func(chosen *settings) { chosen.virtualClock = false }
}

// Key is the account key, base64; by default the emulator's well-known key.
func Key(key string) Option {
	return func(chosen *settings) { chosen.key = key }
}

// Args are further options of the server, such as --enforce-throughput.
func Args(args ...string) Option {
	return func(chosen *settings) { chosen.args = append(chosen.args, args...) }
}

// Env is a further environment variable.
func Env(name, value string) Option {
	return func(chosen *settings) { chosen.env = append(chosen.env, name+"="+value) }
}

// Binary is the binary to start, see FindBinary.
func Binary(path string) Option {
	return func(chosen *settings) { chosen.binary = path }
}

// StartTimeout is how long the start may take; 30 seconds by default.
func StartTimeout(limit time.Duration) Option {
	return func(chosen *settings) { chosen.startTimeout = limit }
}
