package agents

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

const (
	// maxLine bounds a line that is taken, in bytes: what a session takes of one record.
	maxLine = 8<<20 - 1<<10
	// block is how much of a file is read at once, if it has as much.
	block = 256 << 10
)

// lines reads whole lines. It holds at most one.
type lines struct {
	from   *bufio.Reader
	offset int64 // of the next byte
	number int   // of the lines before it
	held   []byte
}

// newLines reads from a reader whose first byte is at an offset of its file. It reads at most size
// bytes at once.
func newLines(from io.Reader, offset int64, number int, size int64) *lines {
	return &lines{from: bufio.NewReaderSize(from, int(min(size, block))), offset: offset, number: number}
}

// A line is one line of a file, without its end.
type line struct {
	text   []byte // valid until the next line is read
	offset int64
	number int   // from 1
	size   int64 // in bytes, with what is not in text
	zeros  int64 // NUL bytes before and behind the text
	long   bool  // it has more than maxLine bytes, and no text
	torn   bool  // the file ends within it
}

// next returns the next line that is not empty. The error is io.EOF behind the last one.
func (l *lines) next() (line, error) {
	for {
		n, err := l.read()
		if err != nil {
			return n, err
		}
		if n.torn && n.size == 0 {
			return n, io.EOF
		}
		if n.long || n.zeros > 0 || len(bytes.TrimSpace(n.text)) > 0 {
			return n, nil
		}
	}
}

func (l *lines) read() (line, error) {
	n := line{offset: l.offset, number: l.number + 1}
	l.held = l.held[:0]
	for {
		piece, err := l.from.ReadSlice('\n')
		n.size += int64(len(piece))
		whole := err == nil
		if len(l.held) == 0 && !n.long {
			piece = l.begin(&n, piece)
		}
		if n.long || len(l.held)+len(piece) > maxLine {
			n.long, l.held = true, l.held[:0]
			piece = nil
		}
		switch {
		case whole && len(l.held) == 0:
			n.text = piece // as it stands in the reader's buffer
		default:
			l.held = append(l.held, piece...)
			n.text = l.held
		}
		if whole || errors.Is(err, io.EOF) {
			l.offset += n.size
			l.number++
			if n.torn = !whole; whole {
				n.text = bytes.TrimRight(n.text, "\r\n")
				text := bytes.TrimRight(n.text, "\x00")
				n.zeros += int64(len(n.text) - len(text))
				n.text = text
			}
			if cap(l.held) > maxLine/4 && len(l.held) < block {
				l.held = nil // one long line is no reason to hold its room
			}
			return n, nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return n, err
		}
	}
}

// begin returns the begin of a line without the NUL bytes in front of it, and without the byte order mark that a file
// may begin with.
func (l *lines) begin(n *line, piece []byte) []byte {
	if l.offset == 0 {
		piece = bytes.TrimPrefix(piece, []byte("\xef\xbb\xbf"))
	}
	text := bytes.TrimLeft(piece, "\x00")
	n.zeros += int64(len(piece) - len(text))
	return text
}
