//go:build unix

package bolide

import (
	"os/exec"
	"syscall"
)

// separate keeps Ctrl-C from the server: it is for the tests, after which the server ends.
func separate(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}
