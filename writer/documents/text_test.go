package documents_test

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer/documents"
)

// UTF-16 is read where its mark stands, whole or byte by byte; nothing else changes.
func TestText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, data, want string }{
		{"little endian", "\xff\xfeA\x00\xe9\x00=\xd8\x00\xde\r\x00\n\x00", "Aé\U0001f600\r\n"},
		{"big endian", "\xfe\xff\x00A\x00\xe9\xd8=\xde\x00", "Aé\U0001f600"},
		{"the mark alone", "\xff\xfe", ""},
		{"half a pair", "\xff\xfeA\x00=\xd8", "A\uFFFD"},
		{"half a unit", "\xff\xfeA\x00B", "A\uFFFD"},
		{"UTF-8", "A\u00e9", "A\u00e9"},
		{"UTF-8 with its mark", "\ufeffA", "\ufeffA"},
		{"no text", "\x00\xff\xfe\x80", "\x00\xff\xfe\x80"},
		{"half a mark", "\xff", "\xff"},
		{"nothing", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			text, err := documents.Text([]byte(c.data))
			require.NoError(t, err)
			require.Equal(t, c.want, string(text))
			text, err = io.ReadAll(documents.TextReader(iotest.OneByteReader(bytes.NewReader([]byte(c.data)))))
			require.NoError(t, err)
			require.Equal(t, c.want, string(text))
		})
	}
	broken := errors.New("broken")
	for _, begin := range []string{"", "A", "\xff\xfeA\x00"} {
		_, err := io.ReadAll(documents.TextReader(io.MultiReader(bytes.NewReader([]byte(begin)), iotest.ErrReader(broken))))
		require.ErrorIs(t, err, broken, begin)
	}
}
