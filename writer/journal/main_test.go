package journal_test

import (
	"testing"

	"github.com/lopen-dev/lopen/writer/crashfs"
)

func TestMain(m *testing.M) {
	crashfs.InMemory()
	m.Run()
}
