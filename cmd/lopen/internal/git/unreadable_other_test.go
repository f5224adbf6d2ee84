//go:build !unix

package git

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// unreadable are the things that cannot be read as a file.
var unreadable = map[string]func(t *testing.T, path string){
	"folder": func(t *testing.T, path string) { require.NoError(t, os.Mkdir(path, 0o755)) },
}
