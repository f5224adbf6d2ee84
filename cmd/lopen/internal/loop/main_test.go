package loop

import (
	"os"
	"testing"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/child"
)

func TestMain(m *testing.M) {
	child.KeepIfAsked()
	os.Exit(m.Run())
}
