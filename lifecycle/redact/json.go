package redact

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/lopen-dev/lopen/writer/strictjson"
)

// JSON returns one JSON value with the credentials in its strings hidden, and
// how many pieces it hid. Strings are looked at decoded, so no escape hides a
// credential, and also behind their member's name; every byte that is not hidden
// stays as it is, escapes, blanks and order included. Names are redacted like
// values: the second one that is hidden and the following get a number, so that
// no object has the same name twice. raw itself is returned when there was
// nothing to hide.
//
// Text that is no JSON value, or nested deeper than encoding/json reads (10,000
// levels), is an error, and nothing is returned.
func (r *Redactor) JSON(raw []byte) ([]byte, int, error) {
	if r == nil {
		return raw, 0, nil
	}
	if err := strictjson.Check(raw); err != nil {
		return nil, 0, fmt.Errorf("redact json: %w", err)
	}
	w := jsonWalk{r: r, raw: raw}
	for i := 0; i < len(raw); {
		switch raw[i] {
		case '"':
			i = w.text(i)
		case ' ', '\t', '\r', '\n', ':':
			i++
		case '{', '}':
			w.name, w.said, w.argument = "", "", false
			i++
		case ',':
			if !w.argument {
				w.name = ""
			}
			i++
		default:
			w.name, w.argument = "", false // the name was for a string; this is none
			i++
		}
	}
	if w.count == 0 {
		return raw, 0, nil
	}
	return append(w.out, raw[w.copied:]...), w.count, nil
}

// jsonWalk goes over the strings of a valid JSON value; the rest needs no
// parser.
type jsonWalk struct {
	r      *Redactor
	raw    []byte
	out    []byte
	copied int // raw[:copied] is in out
	count  int
	names  int    // names hidden so far
	name   string // kind of the value that the name just read asks for
	said   string // kind of the value that the text just read is the name of
	// argument says that the name was a command's flag, whose value is the next string.
	argument bool
}

// text handles the string that opens at raw[i] and returns where it ends.
func (w *jsonWalk) text(i int) int {
	open, end := i+1, strictjson.TextEnd(w.raw, i+1)
	body := unescape(w.raw[open:end])
	isName := bytes.HasPrefix(bytes.TrimLeft(w.raw[end+1:], " \t\r\n"), []byte{':'})

	spans := w.r.find(body)
	if w.name != "" && !isName {
		if from, ok := secretBehind(w.name, body, spans); ok {
			spans = unite(append(spans, span{start: from, end: len(body), rank: rankContext, kind: w.name}))
		}
	}
	w.hide(open, end, spans)
	w.name, w.argument = "", false
	if isName {
		if len(spans) > 0 {
			if w.names++; w.names > 1 {
				w.copyTo(end)
				w.out = strconv.AppendInt(append(w.out, ' '), int64(w.names), 10)
			}
		}
		w.name = nameKind(body)
		if string(body) == "value" || string(body) == "Value" {
			w.name = w.said
		}
		w.said = ""
		if len(markers(body)) > 0 || len(spans) > 0 {
			w.name = ""
		}
	} else if kind := argumentKind(body); kind != "" {
		w.name, w.argument = kind, true
	} else if w.said = nameKind(body); run(body, 0, dotted, maxName) < len(body) {
		w.said = ""
	}
	return end + 1
}

// secretBehind is secretIn for a whole string behind a name: as it is, and as it is
// with spans hidden.
func secretBehind(kind string, body []byte, spans []span) (from int, ok bool) {
	if from, _, ok = secretIn(kind, body, true); ok && len(markers(body)) == 0 {
		return from, true
	}
	v := newView(body, spans, false)
	text := bare(v.text)
	if from, _, ok = secretIn(kind, text, true); ok && len(text) == len(v.text) {
		from, _ = v.origin(from, len(text))
		return from, true
	}
	return 0, ok // with marks between it is hidden whole
}

// hide replaces the spans of the string raw[open:end], which count decoded
// bytes, where they stand in raw.
func (w *jsonWalk) hide(open, end int, spans []span) {
	raw, decoded := open, 0
	seek := func(to int) {
		for decoded < to && raw < end {
			n, width := 1, 1
			if w.raw[raw] == '\\' {
				var c rune
				c, width = escape(w.raw[raw:end])
				n = utf8.RuneLen(c)
			}
			raw, decoded = raw+width, decoded+n
		}
	}
	for _, s := range spans {
		seek(s.start)
		w.copyTo(raw)
		w.out = appendMarker(w.out, s.kind)
		seek(s.end)
		w.copied = raw
		w.count++
	}
}

func (w *jsonWalk) copyTo(i int) {
	w.out = append(w.out, w.raw[w.copied:i]...)
	w.copied = i
}

// unescape decodes the inside of a valid JSON string, which is returned itself where it
// has no escapes. Bytes that are no UTF-8 stay as they are; half a surrogate pair becomes U+FFFD.
func unescape(raw []byte) []byte {
	i := bytes.IndexByte(raw, '\\')
	if i < 0 {
		return raw
	}
	out := make([]byte, 0, len(raw))
	for ; i >= 0; i = bytes.IndexByte(raw, '\\') {
		c, width := escape(raw[i:])
		out = utf8.AppendRune(append(out, raw[:i]...), c)
		raw = raw[i+width:]
	}
	return append(out, raw...)
}

// escape decodes the escape that raw begins with and returns its width.
func escape(raw []byte) (rune, int) {
	switch raw[1] {
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
		c := unit(raw)
		if !utf16.IsSurrogate(c) {
			return c, 6
		}
		if len(raw) >= 12 && raw[6] == '\\' && raw[7] == 'u' {
			if pair := utf16.DecodeRune(c, unit(raw[6:])); pair != utf8.RuneError {
				return pair, 12
			}
		}
		return utf8.RuneError, 6
	}
	return rune(raw[1]), 2 // quote, backslash, slash
}

// unit reads the four digits of \uXXXX, which json.Unmarshal has checked.
func unit(raw []byte) rune {
	n, err := strconv.ParseUint(string(raw[2:6]), 16, 16)
	if err != nil {
		return utf8.RuneError
	}
	return rune(n)
}
