package main

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/terminal"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/rewind"
)

// TestNamesOfCheckpoints holds what finds a checkpoint.
func TestNamesOfCheckpoints(t *testing.T) {
	t.Parallel()
	entry := func(number uint64, id byte, why checkpoint.Reason, task string) *checkpoint.Entry {
		e := &checkpoint.Entry{Number: number, ID: checkpoint.ID{0xab, 0xcd, id}}
		e.Reason, e.Task = why, task
		return e
	}
	line := map[checkpoint.ID]bool{}
	for _, id := range []byte{1, 2, 4, 5, 6} {
		line[checkpoint.ID{0xab, 0xcd, id}] = true
	}
	c := &chain{line: line, all: []*checkpoint.Entry{
		entry(1, 1, checkpoint.BeforeTask, "auth/login"), entry(2, 2, checkpoint.AfterTask, "auth/login"), entry(3, 3, checkpoint.AfterTask, "auth/login"),
		entry(4, 4, checkpoint.BeforeTask, "auth/logout"), entry(5, 5, checkpoint.AfterTask, "auth/logout"), entry(1234, 6, checkpoint.Manual, ""),
		{Number: 1235, ID: checkpoint.ID{0x12, 0x34}},
	}}
	for name, want := range map[string]uint64{
		"1": 1, "1234": 1234, "12340": 1235, "1235": 1235, "abcd03": 3, c.all[4].ID.String(): 5, "last": 1234,
		"before:login": 1, "after:login": 2, "before:auth/login": 1, "before:auth": 1, "after:auth": 5, "before:UTH": 1, "before:in": 1,
	} {
		e, err := c.find(name)
		require.NoError(t, err, name)
		require.Equal(t, want, e.Number, name)
	}
	for name, want := range map[string]int{
		"abcd": exitUsage, "abcd0": exitUsage, "during:login": exitUsage, "6": exitNotFound, "abc": exitNotFound, "ABCD03": exitNotFound, "": exitNotFound, "before:nothing": exitNotFound, "failed:login": exitNotFound, "before:log": exitUsage, "before:": exitNotFound, "-1": exitNotFound,
	} {
		_, err := c.find(name)
		require.Error(t, err, name)
		require.Equal(t, want, exitCode(err), name)
	}
	c.line = nil
	e, err := c.find("last")
	require.NoError(t, err, "without a session it is the newest of all")
	require.EqualValues(t, 1235, e.Number)
	c.all = nil
	_, err = c.find("last")
	require.ErrorIs(t, err, checkpoint.ErrNotFound)
}

// TestSummaryOfARewind holds what is said of many paths, and of each.
func TestSummaryOfARewind(t *testing.T) {
	t.Parallel()
	var r rewind.Result
	for i := range namedPaths + 3 {
		r.Changes = append(r.Changes, checkpoint.Change{Kind: checkpoint.KindCreate, Path: fmt.Sprintf("made-%02d", i)})
		r.Retained = append(r.Retained, checkpoint.Retained{Path: fmt.Sprintf("kept-%02d", i), Why: checkpoint.Foreign, By: "b-1 one", At: 7})
	}
	r.Retained[0] = checkpoint.Retained{Path: "kept\n", Why: checkpoint.Ignored}
	show := func(whole bool) string {
		var out bytes.Buffer
		w := terminal.New(&out)
		showRewind(w, []string{"git"}, r, whole)
		require.NoError(t, w.Close())
		return out.String()
	}
	whole := show(true)
	require.Equal(t, 2*(namedPaths+3), bytes.Count([]byte(whole), []byte("\n")))
	require.Contains(t, whole, "keep      kept-12 (changed by somebody else: b-1 one; 7 has it)\n")
	require.Contains(t, whole, `keep      "kept\n" (ignored)`+"\n")
	summary := show(false)
	require.NotContains(t, summary, "made-10")
	require.Contains(t, summary, "          and 3 more (create)\n")
	require.Contains(t, summary, "          and 2 more (kept: changed by somebody else)\n")
	require.Contains(t, summary, "in all: 13 create, 1 kept: ignored, 12 kept: changed by somebody else\n")
}
