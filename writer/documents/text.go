package documents

import (
	"bufio"
	"bytes"
	"io"

	"golang.org/x/text/encoding/unicode"
)

// IsUTF16 reports whether a file begins with the byte order mark of UTF-16, as the files do that
// Windows PowerShell 5 writes for `>`.
func IsUTF16(begin []byte) bool {
	return bytes.HasPrefix(begin, []byte{0xff, 0xfe}) || bytes.HasPrefix(begin, []byte{0xfe, 0xff})
}

// Text returns a file's content in UTF-8, without the mark if it has the byte order mark of UTF-16.
// Half a character becomes U+FFFD. Content without that mark is returned as it is.
func Text(data []byte) ([]byte, error) {
	if !IsUTF16(data) {
		return data, nil
	}
	return io.ReadAll(TextReader(bytes.NewReader(data)))
}

// TextReader is [Text] for a stream. It reads from r once before it returns.
func TextReader(r io.Reader) io.Reader {
	from := bufio.NewReader(r)
	if begin, _ := from.Peek(2); !IsUTF16(begin) { // an error comes back from the next Read
		return from
	}
	return unicode.UTF16(unicode.LittleEndian, unicode.ExpectBOM).NewDecoder().Reader(from)
}
