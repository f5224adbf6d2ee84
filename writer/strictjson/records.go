package strictjson

import (
	"bytes"
	"iter"
	"slices"
	"strings"
)

// maxTorn bounds the places in a line at which [Records] looks for a record and finds a torn one: each may cost
// as much as the line is long.
const maxTorn = 32

// Records yields the values of a line in which several records of another program may stand: the line feed between them
// was lost, or one was torn and others follow it. beginnings are how the records of that program begin. What is no JSON
// is yielded with an error, up to the place where the next whole record begins.
func Records(line []byte, beginnings ...string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for line = trimLeft(line); len(line) > 0; line = trimLeft(line) {
			_, rest, err := NextForeign(line)
			if err != nil {
				rest = nextRecord(line, beginnings)
			}
			if !yield(line[:len(line)-len(rest)], err) {
				return
			}
			line = rest
		}
	}
}

// nextRecord returns a line from the next whole record behind its first byte on, or nothing. An object within a torn
// record is none: a comma or a bracket follows it.
func nextRecord(line []byte, beginnings []string) []byte {
	rest := line[1:]
	for torn := 0; torn < maxTorn; {
		i := bytes.Index(rest, []byte(`{"`))
		if i < 0 {
			return nil
		}
		rest = rest[i:]
		if !slices.ContainsFunc(beginnings, func(b string) bool { return bytes.HasPrefix(rest, []byte(b)) }) {
			rest = rest[1:]
			continue
		}
		_, behind, err := NextForeign(rest)
		if err != nil {
			torn++
			rest = rest[1:]
			continue
		}
		if behind = trimLeft(behind); len(behind) == 0 || !strings.ContainsRune(",]}", rune(behind[0])) {
			return rest
		}
		rest = behind
	}
	return nil
}

func trimLeft(data []byte) []byte { return bytes.TrimLeft(data, " \t\r\n") }
