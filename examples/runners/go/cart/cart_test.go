package cart

import (
	"testing"

	"example.org/acme/shop/planted"
)

func TestPays(t *testing.T) { planted.Fails(t, "none") }

func TestPaysTwice(t *testing.T) { planted.Fails(t, "breakage") }

func TestRoute(t *testing.T) {
	for _, path := range []string{"/", "a/b", "it's a \"cart\" > [1] (ü) $|\\d+#", "it's a"} {
		t.Run(path, func(t *testing.T) {
			t.Run("costs 1+1", func(t *testing.T) {
				switch {
				case path == "a/b":
					planted.Fails(t, "flaky-1")
				case len(path) > 10:
					planted.Fails(t, "flaky-2")
				}
			})
			t.Run("costs 1+10", func(t *testing.T) {})
		})
	}
}
