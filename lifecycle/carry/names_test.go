package carry

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

func TestNames(t *testing.T) {
	t.Parallel()
	id, err := session.ParseID("auth-20260214-1")
	require.NoError(t, err)
	sum := strings.Repeat("0a", 32)
	type row struct {
		name     string
		kind     kind
		of, file string
	}
	rows := []row{
		{projectFile, ofProject, "", ""},
		{chainEntry("main"), ofChain, "main", ""},
		{chainEntry("import-0123456789abcdef"), ofChain, "import-0123456789abcdef", ""},
		{documentEntry(sum), aDocument, sum, ""},
	}
	for _, file := range []string{
		"journal-1-1.jsonl", "journal-2-13.jsonl.zst", "segments", "state.json", "metrics.json", "messages.jsonl", "transcript.jsonl",
		"meta.json", "recovery.json", "inherited/1/journal-1-1.jsonl", "inherited/12/segments", "history/1-4.json.zst",
		"output/000001.json", "output/000001.log", "output/000012-2.log.8388608", "output/000001.raw", "output/000001.prompt.md",
	} {
		rows = append(rows, row{sessionsDir + "/" + id.String() + "/" + file, ofSession, id.String(), file})
	}
	for _, at := range []string{"trash/auth-20260214-1", "corrupted/auth-20260214-1-20260215T010203Z", "corrupted/auth-20260214-1-20260215T010203Z.12"} {
		rows = append(rows, row{at + ".json", ofKept, at, ""}, row{at + "/state.json", ofKept, at, "state.json"}, row{name: at}, row{name: at + "/.lock"})
	}
	for _, file := range []string{
		"", ".", "..", ".lock", ".child", "pause-request", "wake-request", "files", "cursors/a.json", ".tmp-state.json-x", "state.json.aside-2026",
		"journal-01-1.jsonl", "journal-1-1.jsonl.xz", "inherited/0/segments", "inherited/1/state.json", "inherited/1/../segments", "inherited/segments",
		"history/0-1.json.zst", "history/1-1.json.xz", "history/../state.json", "output/1.log", "output/000001.txt", "output/../state.json", "state.json/x", "STATE.json",
	} {
		rows = append(rows, row{name: sessionsDir + "/" + id.String() + "/" + file})
	}
	for _, name := range []string{
		"", "/", ".", "sessions", "sessions/x/state.json", "sessions/AUTH-20260214-1/state.json", "checkpoints/", "checkpoints/main", "checkpoints/..jsonl",
		"checkpoints/a/b.jsonl", "documents/", "documents/00", documentEntry(strings.ToUpper(sum)), "project.jsonl/", "project.jsonl/x", "ids.json", "config.json",
		"trash", "trash/", "trash/x.json", "trash/../ids.json", "trash/auth-20260214-1-20260215T010203Z.json", "corrupted/auth-20260214-1.json", "corrupted/auth-20260214-1-x/segments",
	} {
		rows = append(rows, row{name: name})
	}
	for _, r := range rows {
		k, of, file := parseEntry(r.name)
		require.Equal(t, r, row{r.name, k, of, file})
	}
}

func TestProjectLine(t *testing.T) {
	t.Parallel()
	data, err := strictjson.Marshal(projectLine{Raw: []byte{0xff}, Size: 3, Mode: 0o644, SHA256: "00"})
	require.NoError(t, err)
	require.JSONEq(t, `{"raw":"/w==","size":3,"mode":420,"sha256":"00"}`, string(data))
}
