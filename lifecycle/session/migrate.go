package session

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/lopen-dev/lopen/lifecycle/session/strictjson"
)

// A step takes what one version wrote to the next: pure functions from JSON to
// JSON, which keep every member that they know nothing of. The files are given as
// the members of their outermost object, without the checksum.
//
// Version 1 wrote state.json and metrics.json and no journal. Its metrics.json was
// replaced first, so that it may be ahead of state.json, which counts the
// iterations that it covers.
type step struct {
	state func(state []Field) ([]Field, error)
	// metrics is given the members of the state.json beside it, which may be of a
	// later version: a crash can come between the two files.
	metrics func(metrics, state []Field) ([]Field, error)
	record  func(line []byte) ([]byte, error)
}

// migrations has at v the step from version v to the one after it.
var migrations = [SchemaVersion]step{1: {stateTo2, metricsTo2, recordTo2}}

// stateTo2 says that metrics.json is not behind.
func stateTo2(state []Field) ([]Field, error) {
	return set(state, "iterationsSeq", value(state, "seq")), nil
}

// metricsTo2 cuts the iterations to those that the State covers.
func metricsTo2(metrics, state []Field) ([]Field, error) {
	var all []string
	r := strictjson.NewReader(value(metrics, "iterations"))
	r.Array(func() { all = append(all, r.Value()) })
	n, err := strconv.Atoi(string(value(state, "iterations")))
	if value(state, "iterations") == nil { // none are left out
		n, err = 0, nil
	}
	switch {
	case errors.Join(err, r.Err()) != nil || n < 0 || n > len(all):
		return metrics, nil // no migration makes good of that: reading tells what is wrong
	case n < len(all):
		list := []byte{'['}
		for i, it := range all[:n] {
			if i > 0 {
				list = append(list, ',')
			}
			list = append(list, it...)
		}
		metrics = set(metrics, "iterations", append(list, ']'))
		metrics = slices.DeleteFunc(metrics, func(f Field) bool { return f.Key == "totals" }) // those of all
	}
	metrics = set(metrics, "epoch", value(state, "epoch")) // of a state.json that was written anew
	return set(metrics, "seq", value(state, "seq")), nil
}

func recordTo2([]byte) ([]byte, error) {
	return nil, errors.New("version 1 had no journal")
}

func value(fields []Field, key string) []byte { return extraValue(fields, key) }

// set puts a member in its place, or behind the others. fields stays as it is.
func set(fields []Field, key string, v []byte) []Field {
	if v == nil {
		return fields
	}
	fields = slices.Clone(fields)
	if i := slices.IndexFunc(fields, func(f Field) bool { return f.Key == key }); i >= 0 {
		fields[i].Value = v
		return fields
	}
	return append(fields, Field{key, v})
}

// migrate brings the contents of state.json and metrics.json to this version, and
// returns the older one of the versions that they had; 0 where that cannot be told.
// A checksum that fits is made anew; one that does not is left out, so that the
// result is as much edited outside as the original was.
func migrate(state, metrics []byte) (newState, newMetrics []byte, was int64, err error) {
	sv, mv := versionOf(state), versionOf(metrics)
	was = min(sv, mv)
	if was == 0 || was >= SchemaVersion || max(sv, mv) > SchemaVersion {
		return state, metrics, was, nil
	}
	s, err := topLevel(state)
	if err != nil {
		return nil, nil, was, fmt.Errorf("state.json: %w: %w", ErrCorrupt, err)
	}
	m, err := topLevel(metrics)
	if err != nil {
		return nil, nil, was, fmt.Errorf("metrics.json: %w: %w", ErrCorrupt, err)
	}
	for v := was; v < SchemaVersion && err == nil; v++ {
		if mv == v {
			m, err = migrations[v].metrics(m, s)
			m, mv = versioned(m, v+1), v+1
		}
		if sv == v && err == nil {
			s, err = migrations[v].state(s)
			s, sv = versioned(s, v+1), v+1
		}
	}
	if err != nil {
		return nil, nil, was, fmt.Errorf("%w: bring version %d up to %d: %w", ErrCorrupt, was, SchemaVersion, err)
	}
	return rebuilt(state, s), rebuilt(metrics, m), was, nil
}

func versioned(fields []Field, v int64) []Field {
	return set(fields, "schemaVersion", strconv.AppendInt(nil, v, 10))
}

// migrateRecord brings a line of a journal of an older version to this one.
func migrateRecord(line []byte, v int64) (_ []byte, err error) {
	for ; v < SchemaVersion && err == nil; v++ {
		line, err = migrations[v].record(line)
	}
	return line, err
}

// versionOf is the schemaVersion of a file, 0 where it has none. What this version
// writes begins with it; where a tool has sorted the members it is further on.
func versionOf(data []byte) (v int64) {
	const first = `{"schemaVersion":`
	if rest, ok := bytes.CutPrefix(data, []byte(first+strconv.Itoa(SchemaVersion))); ok && len(rest) > 0 && rest[0] == ',' {
		return SchemaVersion
	}
	r := strictjson.NewReader(data)
	r.Object(func(key string) {
		if key != "schemaVersion" {
			r.Value()
			return
		}
		if v = r.Int(); r.Err() == nil {
			r.Fail("it was found")
		}
	})
	return max(v, 0)
}

// topLevel are the members of a file's outermost object but for its checksum.
func topLevel(data []byte) (fields []Field, err error) {
	r := strictjson.NewReader(data)
	r.Object(func(key string) {
		if v := r.Value(); key != "checksum" {
			fields = append(fields, Field{key, []byte(v)})
		}
	})
	r.End()
	return fields, r.Err()
}

// rebuilt is a file of other members, sealed if the original was.
func rebuilt(original []byte, fields []Field) []byte {
	e := &encoder{b: append(make([]byte, 0, len(original)+256), '{')}
	for _, f := range fields {
		e.field(f.Key, f.Value)
	}
	if checksum(original) != nil {
		return append(e.b, '}', '\n')
	}
	return e.seal()
}
