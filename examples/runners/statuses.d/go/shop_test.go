package shop

import (
	"os"
	"testing"
)

var planted = os.Getenv("PLANTED")
var row = 0

func TestMain(m *testing.M) {
	status := m.Run()
	if planted == "outside" {
		status = 1
	}
	os.Exit(status)
}

// With -count=2, rows of one name.
func TestAdds(t *testing.T) {
	row++
	if planted == "first-row" && row == 1 || planted == "last-row" && row == 2 {
		t.Fatal("wrong sum")
	}
}

// gotestsum runs it again in another process.
func TestSends(t *testing.T) {
	if (planted == "flaky" || planted == "outside") && os.Mkdir("sent", 0o755) == nil {
		t.Fatal("not sent")
	}
}

func TestPays(t *testing.T) {
	if planted == "broken" {
		t.Fatal("not paid")
	}
}

func TestShips(t *testing.T) {}

func TestReturns(t *testing.T) {}
