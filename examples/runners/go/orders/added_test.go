package orders

import (
	"testing"

	"example.org/acme/shop/planted"
)

func TestDiscount(t *testing.T) { planted.Fails(t, "new") }
