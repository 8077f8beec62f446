package orders

import (
	"os"
	"testing"

	"example.org/acme/shop/planted"
)

func TestPays(t *testing.T) {}

func TestRoute(t *testing.T) {
	t.Run("it's a", func(t *testing.T) { planted.Fails(t, "flaky-3") })
	t.Run("it's a", func(t *testing.T) {})
}

func TestShips(t *testing.T) { planted.Fails(t, "broken") }

func TestReturns(t *testing.T) {
	planted.Kills(os.Getppid(), "killed")
	planted.Kills(os.Getpid(), "process-killed")
}
