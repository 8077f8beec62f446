// Package planted has the faults that the variable PLANTED names, one a word.
package planted

import (
	"os"
	"strings"
	"syscall"
	"testing"
)

func has(fault string) bool {
	return strings.Contains(" "+os.Getenv("PLANTED")+" ", " "+fault+" ")
}

var calls int

// Fails the test with this fault.
func Fails(t *testing.T, fault string) {
	t.Helper()
	calls++
	// Earlier tests of the package spoil what this one needs.
	if fault == "breakage" && calls > 1 && has("polluted") {
		t.Errorf("planted: polluted")
	}
	if has(fault) {
		t.Errorf("planted: %s", fault)
	}
}

// Kills ends a process with this fault.
func Kills(process int, fault string) {
	if has(fault) {
		syscall.Kill(process, syscall.SIGKILL)
		select {}
	}
}
