package lifecycle_test

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
)

// What is refused leaves nothing.
func TestImportRefuses(t *testing.T) {
	t.Parallel()
	from, id := workedElsewhere(t)
	dir := "sessions/" + id.String() + "/"
	text := func(s string) func([]byte) []byte { return func([]byte) []byte { return []byte(s) } }
	for name, c := range map[string]struct {
		change func(l *loaded)
		want   string
	}{
		"not whole":            {func(l *loaded) { l.fail = fmt.Errorf("cut off: %w", lifecycle.ErrCorrupt) }, "cut off"},
		"a name of nothing":    {func(l *loaded) { l.add("ids.json", nil) }, "nothing that is carried"},
		"a lock":               {func(l *loaded) { l.add(dir+".lock", nil) }, "nothing that is carried"},
		"a way out":            {func(l *loaded) { l.add(dir+"../../config.json", nil) }, "nothing that is carried"},
		"no session":           {func(l *loaded) { l.add("sessions/AUTH-1/state.json", nil) }, "nothing that is carried"},
		"another session":      {func(l *loaded) { l.add("sessions/auth-20260214-77/segments", nil) }, "does not name the session"},
		"a session is missing": {func(l *loaded) { l.header.Sessions[0].ID = "auth-20260214-77" }, "does not name"},
		"twice":                {func(l *loaded) { l.header.Sessions = append(l.header.Sessions, l.header.Sessions[0]) }, "named twice"},
		"a huge counter":       {func(l *loaded) { l.header.Sessions[0].ID = "auth-20260214-18446744073709551615" }, "is no session"},
		"another module":       {func(l *loaded) { l.header.Sessions[0].Module = "other" }, "is no session of module"},
		"another record":       {func(l *loaded) { l.header.Sessions[0].Seq++ }, "its log is at record"},
		"another incarnation":  {func(l *loaded) { l.header.Sessions[0].Incarnation = "00" }, "its log is at record"},
		"another progress":     {func(l *loaded) { l.header.Sessions[0].Done = 7 }, "its log is at record"},
		"another status":       {func(l *loaded) { l.header.Sessions[0].Status = "complete" }, "its log is at record"},
		"a damaged log": {func(l *loaded) {
			l.replace(t, "journal-", func(d []byte) []byte { d[bytes.Index(d, []byte(`"ops"`))] ^= 1; return d })
		}, "sessions/" + id.String()},
		"another session's log": {func(l *loaded) {
			for _, name := range []string{"journal-", "segments"} {
				l.replace(t, name, func(d []byte) []byte { return bytes.ReplaceAll(d, []byte(id.String()), []byte("auth-20260214-9")) })
			}
		}, "sessions/" + id.String()},
		"a damaged chain":   {func(l *loaded) { l.replace(t, "checkpoints/", func(d []byte) []byte { d[20] ^= 1; return d }) }, "checkpoints/main.jsonl"},
		"a chain cut short": {func(l *loaded) { l.replace(t, "checkpoints/", func(d []byte) []byte { return d[:len(d)-1] }) }, "cannot be read"},
		"no objects": {func(l *loaded) {
			l.entries = slices.DeleteFunc(l.entries, func(e loadedEntry) bool { return e.Name == "" })
		}, "checkpoint 1"},
		"a content is missing": {func(l *loaded) {
			l.entries = slices.DeleteFunc(l.entries, func(e loadedEntry) bool { return e.Name == "" && string(e.data) == "old" })
		}, "the content of gone is missing"},
		"another content": {func(l *loaded) {
			i := slices.IndexFunc(l.entries, func(e loadedEntry) bool { return e.Name == "" && string(e.data) == "old" })
			l.entries[i].data = []byte("new")
		}, "another hash"},
		"a document is missing":   {func(l *loaded) { l.header.Documents[0].SHA256 = strings.Repeat("00", 32) }, "no such document"},
		"a document is too large": {func(l *loaded) { l.header.Documents[0].Size = 1 << 30 }, "more than"},
		"a document has no hash":  {func(l *loaded) { l.header.Documents[0].SHA256 = "../x" }, "no hash"},
		"another document":        {func(l *loaded) { l.replace(t, "documents/", text("- [x] one\n- [x] TWO\n")) }, "another hash"},
		"a document is no text":   {func(l *loaded) { l.document("x.md", "research", "", "\xff") }, "no text in UTF-8"},
		"a document has a zero":   {func(l *loaded) { l.document("x.md", "research", "", "\x00") }, "no text in UTF-8"},
		"an unnamed document":     {func(l *loaded) { l.add("documents/"+strings.Repeat("00", 32), nil) }, "no such document"},
		"files outside":           {func(l *loaded) { l.add("project.jsonl", []byte(`{"path":"../x","size":1,"mode":420}`+"\n")) }, "no path inside"},
		"files without a path":    {func(l *loaded) { l.add("project.jsonl", []byte("{}\n")) }, "no path inside"},
		"files that are no JSON":  {func(l *loaded) { l.add("project.jsonl", []byte("x\n")) }, "line 1"},
		"a line without an end":   {func(l *loaded) { l.add("project.jsonl", []byte(`{"path":"x"}`)) }, "cut off"},
		"an endless line":         {func(l *loaded) { l.add("project.jsonl", bytes.Repeat([]byte("x"), 1<<20)) }, "cut off"},
		"a backup's trash":        {func(l *loaded) { l.add("trash/"+id.String()+"/segments", nil) }, "only a backup has it"},
		"bytes below zero":        {func(l *loaded) { l.header.Bytes = -1 }, "it has -1 bytes"},
		"no room":                 {func(l *loaded) { l.header.Bytes = 1 << 60 }, "are free"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := initStore(t)
			before := visible(t, store)
			_, err := store.Import(t.Context(), from.again(c.change))
			require.ErrorContains(t, err, c.want)
			require.Equal(t, before, visible(t, store), err)
			temp := t.TempDir()
			_, verr := lifecycle.VerifyBundle(t.Context(), from.again(c.change), temp)
			if name != "another content" { // the container has compared it
				require.ErrorContains(t, verr, c.want)
			}
			left, err := os.ReadDir(temp)
			require.NoError(t, err)
			require.Empty(t, left)
			_, err = store.Import(t.Context(), from.again(nil))
			require.NoError(t, err, "nothing is in the way of the real one")
			requireIntact(t, store, id)
		})
	}
}

// Documents never replace anything and never lead out of the project, through links or into
// what tools read by themselves.
func TestImportedDocumentsStayInside(t *testing.T) {
	t.Parallel()
	from, _ := workedElsewhere(t)
	outside := t.TempDir()
	store := initStore(t)
	dir := store.Project().Name()
	require.NoError(t, os.Symlink(outside, dir+"/out"))
	require.NoError(t, os.Mkdir(dir+"/real", 0o755))
	require.NoError(t, os.Symlink("real", dir+"/in"))
	require.NoError(t, os.Symlink("nowhere.md", dir+"/dangling.md"))
	write(t, dir+"/mine.md", "mine")
	write(t, dir+"/file", "no folder")
	want := map[string]string{
		"../x.md": "left", "/x.md": "left", "a/../../x.md": "left", "out/x.md": "left", "in/x.md": "left", ".git/hooks/x.md": "left", "a/.git/x.md": "left", ".lopen/x.md": "left",
		".LOPEN/config.md": "left", ".envrc": "left", "a/.hidden.md": "left", "Makefile": "left", "run.sh": "left", "": "left", "file/x.md": "left",
		"mine.md": "different", "dangling.md": "different", "new/deep/x.md": "written", "x.TXT": "left", "x.Markdown": "written",
		"CLAUDE.md": "left", "sub/agents.MD": "left", "CLAUDE.local.md": "left", "CMakeLists.txt": "left", "requirements-dev.txt": "left",
		"dev-requirements.txt": "left", "a/requirements_dev.txt": "left", "requirements/dev.txt": "left", "a/Requirements/Base.TXT": "left", "constraints.txt": "left", "test-constraints.txt": "left",
		"requirement.txt": "left", "conanfile.txt": "left", "meson_options.txt": "left", "packages.txt": "left", "runtime.txt": "left", "CODEX.md": "left", "a/x.instructions.md": "left", "x.prompt.md": "left",
		"tests/test_plan.txt": "left", "requirements/dev/base.txt": "left", "reqs.txt": "left", "vendor/modules.txt": "left", "x.rst": "left", "docs/constraints.md": "written", "docs/prompt.md": "written",
		"docs/requirements/x.md": "written", "docs/myagents.md": "written",
	}
	l := from.again(func(l *loaded) {
		for name := range want {
			l.document(name, "research", "auth", "text of "+name)
		}
		l.document("plan", "plan", "another", "- [ ] x\n")
		l.document("plan", "plan", "../auth", "- [ ] x y\n")
	})
	r, err := store.Import(t.Context(), l)
	require.NoError(t, err)
	for _, d := range r.Documents[2 : len(r.Documents)-2] {
		require.Equal(t, want[d.Path], d.Became, "%s: %s", d.Path, d.Why)
	}
	for _, d := range r.Documents[len(r.Documents)-2:] {
		require.Equal(t, "left", d.Became)
	}
	require.Equal(t, "mine", got(t, store.Project(), "mine.md"))
	left, err := os.ReadDir(outside)
	require.NoError(t, err)
	require.Empty(t, left)
	require.NoFileExists(t, dir+"/nowhere.md")
	require.NoFileExists(t, dir+"/real/x.md")
}
