// Package tests has the tests of the built module, which `cargo xtask packages` requires here.
package tests

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	bolide "github.com/bolide-db/bolide-go"
)

var start = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func TestServerEndsWithItsTest(t *testing.T) {
	var pid int
	t.Run("inner", func(t *testing.T) {
		pid = bolide.Start(t).PID
		if !isRunning(pid) {
			t.Fatal("the server does not run")
		}
	})
	if isRunning(pid) {
		t.Fatal("the server runs after its test")
	}
}

func TestStopMayBeCalledAgain(t *testing.T) {
	db := bolide.Start(t)
	for range 2 {
		if err := db.Stop(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestServerEndsWithTheProcessThatStartedIt(t *testing.T) {
	if os.Getenv("START_AND_DIE") == "1" {
		db, err := bolide.Run()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("pid=%d.\n", db.PID)
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	command := exec.Command(os.Args[0], "-test.run=^TestServerEndsWithTheProcessThatStartedIt$")
	command.Env = append(os.Environ(), "START_AND_DIE=1")
	output, _ := command.Output()
	var pid int
	_, line, _ := strings.Cut(string(output), "pid=")
	if _, err := fmt.Sscanf(line, "%d", &pid); err != nil {
		t.Fatalf("no process id in %q", output)
	}
	for range 1000 {
		if !isRunning(pid) {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("the server outlived its parent")
}

func TestRefusedOptionIsShown(t *testing.T) {
	_, err := bolide.Run(bolide.Args("--no-such-option"))
	if err == nil || !strings.Contains(err.Error(), "--no-such-option") {
		t.Fatalf("got %v", err)
	}
}

func TestMissingBinaryIsNamed(t *testing.T) {
	_, err := bolide.Run(bolide.Binary("/no/such/file"))
	if !errors.Is(err, bolide.ErrNoBinary) || !strings.Contains(err.Error(), "/no/such/file") {
		t.Fatalf("got %v", err)
	}
	t.Setenv("BOLIDE_BIN", "/no/such/file")
	if _, err := bolide.FindBinary(""); !errors.Is(err, bolide.ErrNoBinary) {
		t.Fatalf("got %v", err)
	}
}

func TestServerThatDoesNotGetReadyIsEnded(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "slow")
	if err := os.WriteFile(binary, []byte("#!/bin/sh\necho still busy >&2\nexec sleep 600\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := bolide.Run(bolide.Binary(binary), bolide.StartTimeout(500*time.Millisecond))
	if err == nil || !strings.Contains(err.Error(), "not ready within 500ms\nstill busy") {
		t.Fatalf("got %v", err)
	}
}

func TestClockMovesAndRefusesWhatIsUnclear(t *testing.T) {
	db, err := bolide.Run(bolide.VirtualClock(start), bolide.Key("YSBrZXkgb2Ygb25lJ3Mgb3du"), bolide.DataDir(filepath.Join(t.TempDir(), "data")))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Stop()
	if err := db.Clock.Advance(36*time.Hour + 5*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	now, err := db.Clock.Now()
	if expected := start.Add(36*time.Hour + 5*time.Millisecond); err != nil || now != expected {
		t.Fatalf("the clock shows %s, expected %s: %v", now, expected, err)
	}
	if err := db.Clock.Set(start.AddDate(1, 0, 0)); err != nil {
		t.Fatal(err)
	}
	for _, by := range []time.Duration{-time.Second, time.Microsecond} {
		if err := db.Clock.Advance(by); err == nil {
			t.Fatalf("the clock moved by %s", by)
		}
	}
}

func TestSystemClockCannotBeMoved(t *testing.T) {
	db, err := bolide.Run(bolide.SystemClock())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Stop()
	var refusal *bolide.RequestError
	if err := db.Clock.Advance(time.Hour); !errors.As(err, &refusal) || refusal.Status != 409 {
		t.Fatalf("got %v", err)
	}
}

func TestPurgeOfNothingIsRefused(t *testing.T) {
	db, err := bolide.Run()
	if err != nil {
		t.Fatal(err)
	}
	defer db.Stop()
	var refusal *bolide.RequestError
	if _, err := db.Purge("a b", "c/d"); !errors.As(err, &refusal) || refusal.Status != 404 {
		t.Fatalf("got %v", err)
	}
}

// isRunning tells whether a process has not ended; one that only waits to be collected has.
func isRunning(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	about, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return !errors.Is(err, os.ErrNotExist)
	}
	_, state, _ := strings.Cut(string(about), ") ")
	return !strings.HasPrefix(state, "Z")
}
