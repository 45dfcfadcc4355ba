package bolide

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// The key of the Azure Cosmos DB emulator. It is public, and works on this machine only.
const wellKnownKey = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="

const (
	pollInterval = 5 * time.Millisecond
	// The server needs at most 13 s to end its requests and to close its store.
	stopLimit = 20 * time.Second
	logBytes  = 64 * 1024
)

// process is a server's process and the folder of its files.
type process struct {
	command *exec.Cmd
	stdin   io.Closer
	folder  string
	ended   chan struct{}
	status  error // valid when ended is closed

	stopping sync.Once
	stopped  error
	lastLog  string
	logs     sync.Mutex
}

// readyFile is the content of the ready file.
type readyFile struct {
	Cosmos    string `json:"cosmos"`
	CosmosTLS string `json:"cosmosTls"`
	Mongo     string `json:"mongo"`
}

// FindBinary returns the path of the binary: named, else the environment variable BOLIDE_BIN, else bolide on the PATH. An error wraps ErrNoBinary.
func FindBinary(named string) (string, error) {
	for _, source := range []struct{ name, value string }{{"Binary", named}, {"BOLIDE_BIN", os.Getenv("BOLIDE_BIN")}} {
		if source.value == "" {
			continue
		}
		if about, err := os.Stat(source.value); err != nil || about.IsDir() {
			return "", fmt.Errorf("%w: %s: not a file. value=`%s`", ErrNoBinary, source.name, source.value)
		}
		return filepath.Abs(source.value)
	}
	found, err := exec.LookPath("bolide")
	if err != nil {
		return "", fmt.Errorf("%w: BOLIDE_BIN is not set, and PATH has none; install Bolide", ErrNoBinary)
	}
	return found, nil
}

// startProcess starts the server and waits until it is ready.
func startProcess(chosen *settings) (*process, *readyFile, error) {
	binary, err := FindBinary(chosen.binary)
	if err != nil {
		return nil, nil, err
	}
	folder, err := os.MkdirTemp("", "bolide-")
	if err != nil {
		return nil, nil, err
	}
	server := &process{folder: folder, ended: make(chan struct{})}
	if err := server.spawn(binary, chosen); err != nil {
		os.RemoveAll(folder)
		return nil, nil, fmt.Errorf("cannot start %s: %w", binary, err)
	}
	ready, err := server.waitUntilReady(chosen.startTimeout)
	if err != nil {
		server.abandon()
		return nil, nil, fmt.Errorf("%w\n%s", err, server.log())
	}
	return server, ready, nil
}

func (server *process) spawn(binary string, chosen *settings) error {
	log, err := os.Create(server.logFile())
	if err != nil {
		return err
	}
	defer log.Close()
	command := exec.Command(binary, append(chosen.commandLine(), "--ready-file="+server.readyFile())...)
	command.Env = chosen.environment()
	command.Stderr = log
	// The pipe closes with this process, however that ends, and so ends the server.
	if server.stdin, err = command.StdinPipe(); err != nil {
		return err
	}
	separate(command)
	if err := command.Start(); err != nil {
		return err
	}
	server.command = command
	go func() {
		server.status = command.Wait()
		close(server.ended)
	}()
	return nil
}

func (chosen *settings) commandLine() []string {
	line := []string{"--port=0", "--mongo-port=0", "--stop-with-stdin"}
	if chosen.dataDir == "" {
		line = append(line, "--memory")
	} else {
		line = append(line, "--data-dir="+chosen.dataDir)
	}
	if chosen.virtualClock && chosen.clockStart.IsZero() {
		line = append(line, "--virtual-clock")
	} else if chosen.virtualClock {
		line = append(line, "--virtual-clock="+chosen.clockStart.UTC().Format(time.RFC3339Nano))
	}
	return append(line, chosen.args...)
}

func (chosen *settings) environment() []string {
	var environment []string
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "BOLIDE_") {
			environment = append(environment, variable)
		}
	}
	// The key is in the environment, because every user of the machine may read arguments.
	return append(append(environment, chosen.env...), "BOLIDE_KEY="+chosen.key)
}

func (server *process) waitUntilReady(limit time.Duration) (*readyFile, error) {
	deadline := time.Now().Add(limit)
	for {
		var ended bool
		select {
		case <-server.ended:
			ended = true
		case <-time.After(pollInterval):
		}
		ready := &readyFile{}
		if content, err := os.ReadFile(server.readyFile()); err == nil && json.Unmarshal(content, ready) == nil {
			return ready, nil
		}
		if ended {
			return nil, fmt.Errorf("the server ended while starting: %s", server.command.ProcessState)
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("the server was not ready within %s", limit)
		}
	}
}

func (server *process) stop() error {
	server.stopping.Do(func() {
		server.stdin.Close()
		select {
		case <-server.ended:
			server.stopped = server.status
		case <-time.After(stopLimit):
			server.stopped = fmt.Errorf("the server did not end within %s", stopLimit)
		}
		server.abandon()
		if server.stopped != nil {
			server.stopped = fmt.Errorf("%w\n%s", server.stopped, server.log())
		}
	})
	return server.stopped
}

// abandon ends the process at once if it runs, and removes its folder.
func (server *process) abandon() {
	server.stdin.Close()
	server.command.Process.Kill()
	<-server.ended
	server.logs.Lock()
	defer server.logs.Unlock()
	server.lastLog = endOf(server.logFile())
	os.RemoveAll(server.folder)
	server.folder = ""
}

func (server *process) log() string {
	server.logs.Lock()
	defer server.logs.Unlock()
	if server.folder == "" {
		return server.lastLog
	}
	return endOf(server.logFile())
}

func (server *process) readyFile() string {
	return filepath.Join(server.folder, "ready.json")
}

func (server *process) logFile() string {
	return filepath.Join(server.folder, "server.log")
}

func endOf(log string) string {
	content, err := os.ReadFile(log)
	if err != nil {
		return ""
	}
	if len(content) > logBytes {
		content = content[len(content)-logBytes:]
	}
	return strings.TrimSpace(string(content))
}
