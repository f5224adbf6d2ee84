package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/redact"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/writer"
)

func open(t *testing.T, dir string) writer.FS {
	t.Helper()
	d, err := writer.OpenFS(dir)
	require.NoError(t, err)
	return d
}

func begin(t *testing.T, dir string, iteration int) *Writer {
	t.Helper()
	w, err := Begin(open(t, dir), &redact.Redactor{}, iteration, Attempt{Task: fmt.Sprint("task-", iteration), Attempt: 1, Begun: time.Now()})
	require.NoError(t, err)
	return w
}

func read(t *testing.T, dir, name string, f File) string {
	t.Helper()
	r, err := OpenReader(open(t, dir), name, f)
	require.NoError(t, err)
	defer r.Close()
	data, err := io.ReadAll(r)
	require.NoError(t, err)
	return string(data)
}

func list(t *testing.T, dir string) (names []string) {
	t.Helper()
	d := open(t, dir)
	defer d.Close()
	all, err := List(d)
	require.NoError(t, err)
	for _, k := range all {
		names = append(names, k.Name)
	}
	return names
}

func size(t *testing.T, dir, prefix string) (n int64) {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, prefix+"*"))
	require.NoError(t, err)
	for _, name := range all {
		info, err := os.Stat(name)
		require.NoError(t, err)
		n += info.Size()
	}
	return n
}

// Of much output the begin and the end stay, a line says what is missing, and at no moment
// there is more than the bound on the disk. A reader that runs with the writer sees the same.
func TestBeginAndEndOfMuch(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := begin(t, dir, 1)
	to := w.Stream(Log, "")
	live, err := OpenReader(open(t, dir), "000001", Log)
	require.NoError(t, err)
	defer live.Close()
	var seen bytes.Buffer
	const lines, width = 25 << 10, 1 << 10
	line := func(i int) string { return fmt.Sprintf("%0*d\n", width-1, i) }
	for i := range lines {
		_, err := to.Write([]byte(line(i)))
		require.NoError(t, err)
		if i%(1<<10) == 0 {
			require.LessOrEqual(t, size(t, dir, "000001.log"), int64(MaxFile))
		}
		if i%(3<<10) == 0 {
			_, err = io.Copy(&seen, live)
			require.NoError(t, err)
		}
	}
	require.NoError(t, w.Close(record.Failed, "", true))
	got := read(t, dir, "000001", Log)
	require.True(t, strings.HasPrefix(got, line(0)))
	require.True(t, strings.HasSuffix(got, line(lines-1)))
	head, tail, ok := strings.Cut(got, fmt.Sprintf("[%d bytes are left out here]\n", int64(lines*width)-size(t, dir, "000001.log")))
	require.True(t, ok)
	require.Len(t, head, headBytes)
	require.GreaterOrEqual(t, len(tail), partBytes)
	require.Zero(t, len(tail)%width, "it begins with a whole line")
	_, err = io.Copy(&seen, live)
	require.NoError(t, err)
	var all strings.Builder
	for i := range lines {
		all.WriteString(line(i))
	}
	require.Equal(t, all.String(), seen.String())
}

// A credential is hidden however the output is cut into writes; what is not complete is not
// written yet; events stay JSON.
func TestCredentialsAcrossWrites(t *testing.T) {
	t.Parallel()
	key := "ghp_" + "abcdefghijKLMNOPQRST0123456789abcdEF"
	pem := "-----BEGIN RSA PRIVATE KEY-----\n" + strings.Repeat(strings.Repeat("MIIEvQIB", 8)+"\n", 20) + "-----END RSA PRIVATE KEY-----\n"
	event, err := json.Marshal(map[string]string{"text": "a\n" + pem + key, "password": "hG5xT9wK2pQ7"})
	require.NoError(t, err)
	lines := "password: |\n  hunt3r-block\nuser: x\n\n| user | password |\n|---|---|\n| a | b |\n| bob | hunt3r-table |\n\nmachine h\n  login u\n  password hunt3r-netrc\n" +
		"NAME   TOKEN\ny      z\nx      hunt3rA1b2C3d4E5\n\nPrivate-Lines: 2\n" + strings.Repeat("MIIEvQIB", 8) + "\nhunt3r==\nPrivate-MAC: 0123456789\n"
	text := "the key is " + key + "\n" + pem + string(event) + "\nbetween\n" + lines + string(event)[:200] + "\nend " + key
	for _, step := range []int{1, 7, 100, 1000, len(text)} {
		for _, f := range []File{Log, Raw} {
			dir := t.TempDir()
			w := begin(t, dir, 1)
			to := w.Stream(f, "")
			for rest := text; rest != ""; rest = rest[min(step, len(rest)):] {
				_, err := io.WriteString(to, rest[:min(step, len(rest))])
				require.NoError(t, err)
				data, err := os.ReadFile(filepath.Join(dir, "000001"+string(f)))
				require.NoError(t, err)
				if len(data) < 2000 {
					require.NotContains(t, string(data), "MIIE")
				}
			}
			require.NoError(t, w.Close(record.Failed, "the key "+key, true))
			got := read(t, dir, "000001", f)
			for _, secret := range []string{key, key[:20], "MIIE", "hG5x", "hunt3r"} {
				require.NotContains(t, got, secret)
			}
			lines := strings.Split(got, "\n")
			require.Equal(t, "the key is [redacted:github-token]", lines[0])
			require.Contains(t, got, "\nbetween\n")
			require.True(t, strings.HasSuffix(got, "end [redacted:github-token]\n"))
			if f == Raw {
				require.Contains(t, lines[2], `"password":"[redacted:password]"`)
				require.True(t, json.Valid([]byte(lines[2])), lines[2])
			}
			meta, err := os.ReadFile(filepath.Join(dir, "000001.json"))
			require.NoError(t, err)
			require.NotContains(t, string(meta), key)
		}
	}
}

// An event is redacted as a value: a credential with an escape in it is hidden, and the line
// is JSON still.
func TestEventsStayJSON(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := begin(t, dir, 1)
	_, err := io.WriteString(w.Stream(Raw, ""), `{"password":"hG5x\"T9wK2pQ7","n":[1,"two"]}`+"\n")
	require.NoError(t, err)
	require.NoError(t, w.Close(record.Failed, "", true))
	require.Equal(t, `{"password":"[redacted:password]","n":[1,"two"]}`+"\n", read(t, dir, "000001", Raw))
}

// A credential in pieces is not recognised, so the events of pieces are left out.
func TestEventsAreLeftOut(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := begin(t, dir, 1)
	_, err := io.WriteString(w.Stream(Raw, `{"type":"piece"`), "a\n{\"type\":\"piece\",\"text\":\"ghp_abcdefghij\"}\n{\"type\":\"whole\"}\nb\n{\"type\":\"piece\"}")
	require.NoError(t, err)
	require.NoError(t, w.Close(record.Failed, "", true))
	require.Equal(t, "a\n{\"type\":\"whole\"}\nb\n", read(t, dir, "000001", Raw))
}

// A line without an end takes a bounded part of the memory.
func TestALineWithoutEnd(t *testing.T) {
	t.Parallel()
	w := begin(t, t.TempDir(), 1)
	log, raw := w.Stream(Log, "").(*stream), w.Stream(Raw, "").(*stream)
	piece := bytes.Repeat([]byte("no line feed, "), 4<<10)
	for range 200 {
		for _, s := range []*stream{log, raw} {
			_, err := s.Write(piece)
			require.NoError(t, err)
			require.LessOrEqual(t, len(s.held), s.most)
		}
	}
	require.Positive(t, log.to.total)
	require.Positive(t, raw.to.total)
	_, err := io.WriteString(log, "\n-----BEGIN RSA PRIVATE KEY-----\n")
	require.NoError(t, err)
	for range 8 << 10 {
		_, err := io.WriteString(log, "is what such a file begins with\n")
		require.NoError(t, err)
		require.Less(t, len(log.held), maxOpen)
	}
	require.NoError(t, w.Close("", "", true))
}

// What succeeded keeps its log alone. The oldest attempts go when there is too much, those
// that succeeded first, and never the newest.
func TestTheOldestGo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	attempt := func(iteration int, then string) {
		w := begin(t, dir, iteration)
		w.limit = 3100 << 10
		w.Prompt([]byte("do this\n"))
		for _, f := range []File{Log, Raw} {
			_, err := w.Stream(f, "").Write(bytes.Repeat([]byte("a line of the output\n"), 20<<10))
			require.NoError(t, err)
		}
		require.NoError(t, w.Close(then, "", then != record.Done))
	}
	attempt(1, record.Failed) // 840 KiB
	attempt(2, record.Done)   // 420 KiB
	attempt(3, record.Done)
	require.NoFileExists(t, filepath.Join(dir, "000002.raw"))
	require.NoFileExists(t, filepath.Join(dir, "000002.prompt.md"))
	require.FileExists(t, filepath.Join(dir, "000001.prompt.md"))
	attempt(4, record.Failed)
	require.Equal(t, []string{"000001", "000002", "000003", "000004"}, list(t, dir))
	attempt(5, record.Failed)
	require.Equal(t, []string{"000001", "000003", "000004", "000005"}, list(t, dir))
	attempt(6, record.Done)
	require.Equal(t, []string{"000001", "000004", "000005", "000006"}, list(t, dir))
	attempt(7, record.Failed)
	require.Equal(t, []string{"000004", "000005", "000007"}, list(t, dir))
	require.NoFileExists(t, filepath.Join(dir, "000001.prompt.md"))
	last := begin(t, dir, 8)
	last.limit = 0
	require.NoError(t, last.Close(record.Done, "", false))
	require.Equal(t, []string{"000008"}, list(t, dir))
}

// What was written before a kill is there, with what attempt it is of; a torn line about
// its end says nothing.
func TestKilledInTheMiddle(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := begin(t, dir, 7)
	to := w.Stream(Log, "")
	_, err := io.WriteString(to, "first\nsecond\nthi")
	require.NoError(t, err)
	require.Equal(t, "first\nsecond\n", read(t, dir, "000007", Log))
	f, err := os.OpenFile(filepath.Join(dir, "000007.json"), os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString(`{"ended":"2026-02-14T09:30:00Z","outc`)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	d := open(t, dir)
	defer d.Close()
	all, err := List(d)
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Equal(t, "task-7", all[0].Task)
	require.Equal(t, 7, all[0].Iteration)
	require.Empty(t, all[0].Outcome)
	require.Zero(t, all[0].Ended)

	again := begin(t, dir, 7) // the next run gives the number again
	require.NoError(t, again.Close(record.Done, "", false))
	require.Equal(t, []string{"000007", "000007-2"}, list(t, dir))
	require.NoError(t, again.Close(record.Failed, "", false), "it is closed")
}

// A name that is taken, by whatever, is left alone.
func TestTakenNames(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "outside")
	require.NoError(t, os.WriteFile(outside, []byte("as it was"), 0o600))
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "000001.log")))
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "000001-2.json")))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "000001-3.raw"), 0o700))
	w := begin(t, dir, 1)
	_, err := io.WriteString(w.Stream(Log, ""), "text\n")
	require.NoError(t, err)
	require.NoError(t, w.Close(record.Done, "", false))
	require.Equal(t, "text\n", read(t, dir, "000001-4", Log))
	require.Equal(t, []string{"000001-4"}, list(t, dir))
	data, err := os.ReadFile(outside)
	require.NoError(t, err)
	require.Equal(t, "as it was", string(data))
	_, err = OpenReader(open(t, dir), "000001", Log)
	require.Error(t, err)
	require.NotErrorIs(t, err, fs.ErrNotExist)
	for _, name := range []string{"000001-3.log", "000001-3.json", "000001-2.log"} {
		require.NoFileExists(t, filepath.Join(dir, name))
	}
}

// A file that is larger than any output is not read to its end.
func TestAForeignFileIsReadInPart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"000001.log", "000001.log.9000000", "000001.json"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
		require.NoError(t, os.Truncate(filepath.Join(dir, name), 32<<20))
	}
	require.Equal(t, []string{"000001"}, list(t, dir))
	require.Less(t, len(read(t, dir, "000001", Log)), MaxFile)
}

// The first failure of a write ends the output, and what writes does not notice.
func TestAFailureEndsTheOutput(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := begin(t, dir, 1)
	to := w.Stream(Log, "")
	_, err := io.WriteString(to, "kept\n")
	require.NoError(t, err)
	require.NoError(t, w.log.f.Close())
	for range 3 {
		n, err := io.WriteString(to, "lost\n")
		require.NoError(t, err)
		require.Equal(t, 5, n)
	}
	w.Prompt([]byte("lost"))
	require.ErrorContains(t, w.Close(record.Done, "", true), "000001.log")
	require.Equal(t, "kept\n", read(t, dir, "000001", Log))
	require.NoFileExists(t, filepath.Join(dir, "000001.prompt.md"))
}
