package find

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cache/search"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// What an attempt changed is one hit: the checkpoint before its record says the same. Other changes are found, also when
// the search came between the two records.
func TestFilesOfAnAttempt(t *testing.T) {
	t.Parallel()
	changed := func(task string, kinds ...string) record.Record {
		r := record.Record{Seq: 1, Checkpoint: "c", Ops: []record.Op{{Name: record.OpCheckpointMade, Task: task}}}
		for _, kind := range kinds {
			r.Ops = append(r.Ops, record.Op{Name: record.OpFilesChanged, Task: task, To: kind, Paths: []string{kind + "/a", kind + "/b"}})
		}
		return r
	}
	tried := func(task string, files ...string) record.Record {
		a := record.Attempt{Task: task}
		for _, f := range files {
			a.Files = append(a.Files, record.FileChange{Path: f})
		}
		return record.Record{Seq: 2, Attempts: []record.Attempt{a}}
	}
	found := func(records ...record.Record) string {
		var all []string
		var state tail
		for i := range records {
			data, err := strictjson.Marshal(state)
			require.NoError(t, err)
			state = tail{}
			require.NoError(t, strictjson.Unmarshal(data, &state))
			require.NoError(t, state.record(&records[i], func(d *search.Document) error {
				all = append(all, d.Kind)
				return nil
			}))
		}
		return strings.Join(all, " ")
	}
	require.Equal(t, "attempt", found(changed("x", "new", "old"), tried("x", "new/a", "new/b", "old/a", "old/b", "c")))
	require.Equal(t, "files attempt", found(changed("x", "new", "old"), tried("x", "new/a", "new/b", "old/a")))
	require.Equal(t, "files attempt", found(changed("x", "new"), tried("y", "new/a", "new/b")))
	require.Equal(t, "files", found(changed("x", "new"), record.Record{Seq: 2}))
	require.Equal(t, "files attempt", found(changed("", "new"), tried("x", "new/a", "new/b")), "nobody's")
	require.Empty(t, found(changed("x", "new")), "the next record is not there yet")
}
