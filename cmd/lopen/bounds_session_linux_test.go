package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/codec"
	"github.com/lopen-dev/lopen/writer/envelope"
)

// A foreign project has one session, whose files a test replaces.
type foreign struct {
	testing.TB
	dir string // the project's
	id  session.ID
}

// newForeign makes a session of four records with a message and two checkpoints.
func newForeign(t testing.TB) foreign {
	t.Helper()
	dir := t.TempDir()
	store, _, err := lifecycle.Init(dir, lifecycle.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close(t.Context())) }()
	sess, err := store.Create(t.Context(), "auth")
	require.NoError(t, err)
	f := foreign{t, dir, sess.ID()}
	for i, text := range []string{"one\ntwo\n", "one\nthree\n"} {
		f.put("file.txt", []byte(text))
		require.NoError(t, sess.Append(&session.Message{ID: fmt.Sprint(i), Time: sess.State().Header().CreatedAt, Role: session.RoleUser, Content: session.Text("x")}))
		_, _, err := sess.Checkpoint(t.Context(), checkpoint.Manual, "")
		require.NoError(t, err)
	}
	require.NoError(t, sess.Close(t.Context()))
	return f
}

func (f foreign) put(name string, data []byte) {
	name = filepath.Join(f.dir, name)
	require.NoError(f, os.MkdirAll(filepath.Dir(name), 0o700))
	require.NoError(f, os.WriteFile(name, data, 0o600))
}

// sparse makes a file of zeros that takes no room.
func (f foreign) sparse(name string, size int64) {
	name = filepath.Join(f.dir, name)
	require.NoError(f, os.MkdirAll(filepath.Dir(name), 0o700))
	file, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o600)
	require.NoError(f, err)
	require.NoError(f, file.Truncate(size))
	require.NoError(f, file.Close())
}

func (f foreign) in(name string) string { return ".lopen/sessions/" + f.id.String() + "/" + name }

func (f foreign) get(name string) []byte {
	data, err := os.ReadFile(filepath.Join(f.dir, name))
	require.NoError(f, err)
	return data
}

// state replaces state.json by one with other members, before the tasks or in their place.
func (f foreign) state(members string) {
	data := f.get(f.in("state.json"))
	i := bytes.Index(data, []byte(`,"tasks":`))
	require.Positive(f, i)
	f.put(f.in("state.json"), envelope.Checksum.Append(append(data[:i:i], members...)))
}

// journal puts a segment with a record behind the newest one.
func (f foreign) journal(bodies ...string) {
	names, err := filepath.Glob(filepath.Join(f.dir, f.in("journal-*")))
	require.NoError(f, err)
	last := bytes.TrimRight(f.get(f.in(filepath.Base(names[len(names)-1]))), "\x00")
	records := bytes.Count(last, []byte(`{"seq":`))
	var b bytes.Buffer
	b.Write(last)
	for i, body := range bodies {
		b.Write(sealLine(fmt.Sprintf(`{"seq":%d,"epoch":1,"synced":0,"prior":0,"schemaVersion":2,"at":"2026-02-14T09:30:00Z",%s`, records+1+i, body)))
	}
	f.put(f.in(filepath.Base(names[len(names)-1])), b.Bytes())
}

// sealLine ends a line of a journal that lacks its last member.
func sealLine(line string) []byte {
	return fmt.Appendf(nil, "%s,\"crc\":\"%08x\"}\n", line, crc32.Checksum([]byte(line), crc32.MakeTable(crc32.Castagnoli)))
}

// zipped is what the parts are in zstd.
func zipped(t testing.TB, window int, parts ...[]byte) []byte {
	var out bytes.Buffer
	z, err := zstd.NewWriter(&out, zstd.WithWindowSize(window), zstd.WithEncoderConcurrency(1))
	require.NoError(t, err)
	for _, p := range parts {
		_, err := z.Write(p)
		require.NoError(t, err)
	}
	require.NoError(t, z.Close())
	return out.Bytes()
}

func repeated(s string, n int) string { return strings.TrimSuffix(strings.Repeat(s+",", n), ",") }

// reading are commands that read a session; what they say of a hostile one is theirs. The
// first three read every file between them.
var reading = [][]string{
	{"session", "verify"}, {"checkpoint", "diff", "1", "2"}, {"session", "recover", "ID", "--dry-run"},
	{}, {"session", "show", "--format", "json"}, {"session", "show", "--at", "2"}, {"session", "output"},
}

// guards are the cases that were within the bounds before there were any.
var guards = []string{"tasks in circles", "children one by one", "2,000 segments", "500 snapshots", "snapshot without a line"}

// TestHostileSession has commands read what a stranger put into a session: the one that reads
// it most, and with -hostile all. Under the race detector nothing bounds their memory, and -short leaves it out.
func TestHostileSession(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes a minute; -short")
	}
	const gib = 1 << 30
	unpacked := gib / 2 // bytes; what is read whole is more than runBounded allows
	if *allHostile {
		unpacked = 2 * gib
	}
	for name, put := range map[string]func(f foreign){
		"as it is": func(foreign) {},
		"a large snapshot": func(f foreign) {
			chunk := bytes.Repeat([]byte(" "), 64<<20)
			line := fmt.Appendf(nil, `{"schemaVersion":1,"session":"%s","epoch":1,"seq":2,"at":"2026-02-14T09:30:00Z","reason":"phase-changed","tasks":{"total":0,"completed":0,"active":[]},"iterations":0,"bytes":%d,"sha256":"%x"}`+"\n", f.id, unpacked, sha256.Sum256(nil))
			parts := [][]byte{line}
			for range unpacked / len(chunk) {
				parts = append(parts, chunk)
			}
			data := zipped(f, 8<<20, parts...)
			f.Logf("%d KB", len(data)>>10)
			f.put(f.in("history/1-2.json.zst"), data)
		},
		"snapshot with a window of 512 MiB": func(f foreign) {
			f.put(f.in("history/1-2.json.zst"), zipped(f, 512<<20, bytes.Repeat([]byte(" "), 1<<20), []byte("\n")))
		},
		"snapshot without a line": func(f foreign) {
			for i := range 10 {
				f.put(f.in(fmt.Sprintf("history/1-%d.json.zst", i+2)), zipped(f, 8<<20, bytes.Repeat([]byte(" "), 64<<20)))
			}
		},
		"500 snapshots": func(f foreign) {
			line := fmt.Sprintf(`{"schemaVersion":1,"session":"%s","epoch":1,"seq":%%d,"at":"2026-02-14T09:30:00Z","reason":"phase-changed","tasks":{"total":0,"completed":0,"active":[%s]},"bytes":1,"sha256":"%x"}`+"\n ", f.id, repeated(`""`, 4000), sha256.Sum256([]byte(" ")))
			for i := range 500 {
				f.put(f.in(fmt.Sprintf("history/1-%d.json.zst", i+2)), zipped(f, 1<<20, fmt.Appendf(nil, line, i+2)))
			}
		},
		"compressed bombs": func(f foreign) {
			for _, by := range []codec.Options{{Codec: "gzip", Level: 9}, {}} {
				e := by.Encoder()
				var bomb bytes.Buffer
				z := e.Writer(&bomb)
				for range unpacked / (64 << 20) {
					_, err := z.Write(make([]byte, 64<<20))
					require.NoError(f, err)
				}
				require.NoError(f, z.Close())
				foot := binary.LittleEndian.AppendUint64(e.Codec.Lead(12), uint64(len(bomb.Bytes())*codec.Ratio))
				object := slices.Concat(bomb.Bytes(), envelope.LittleEndian.Append(foot), e.Codec.Tail())
				f.put(f.in("history/1-2.json"+e.Codec.Suffix()), bomb.Bytes())
				f.put(f.in("journal-1-2.jsonl"+e.Codec.Suffix()), bomb.Bytes())
				f.put(f.in("output/000009.log"+e.Codec.Suffix()), object)
				packs, err := filepath.Glob(filepath.Join(f.dir, ".lopen/blobs/packs/*.pack"))
				require.NoError(f, err)
				for _, p := range packs {
					require.NoError(f, os.Remove(p))
				}
				roots := regexp.MustCompile(`"root":"([0-9a-f]{2})([0-9a-f]{62})"`).FindAllSubmatch(f.get(".lopen/checkpoints/main.jsonl"), -1)
				require.NotEmpty(f, roots)
				for _, root := range roots {
					f.put(fmt.Sprintf(".lopen/blobs/%s/%s%s", root[1], root[2], e.Codec.Suffix()), object)
				}
			}
		},
		"sparse files": func(f foreign) {
			for _, name := range []string{"ids.json", "config.json", "sessions/latest.txt", "checkpoints/main.files"} {
				f.sparse(".lopen/"+name, gib)
			}
			for _, name := range []string{"metrics.json", "meta.json", "recovery.json", ".lock", ".child", "pause-request", "files", "history/1-2.json.zst", "transcript.jsonl", "state.v1.json", "output/000001.json", "output/000001.log"} {
				f.sparse(f.in(name), gib)
			}
		},
		"a sparse state":             func(f foreign) { f.sparse(f.in("state.json"), gib) },
		"a sparse journal":           func(f foreign) { f.sparse(f.in("journal-1-1.jsonl"), gib) },
		"a sparse segment of 50 GiB": func(f foreign) { f.sparse(f.in("journal-1-2.jsonl"), 50*gib) },
		"a snapshot of empty frames": func(f foreign) {
			name := f.in("history/1-2.json.zst")
			f.sparse(name, 20*gib)
			file, err := os.OpenFile(filepath.Join(f.dir, name), os.O_WRONLY, 0)
			require.NoError(f, err)
			for i := range int64(5) { // a skippable frame of zstd, 4 GiB each
				_, err := file.WriteAt([]byte{0x50, 0x2a, 0x4d, 0x18, 0xf8, 0xff, 0xff, 0xff}, i*4*gib)
				require.NoError(f, err)
			}
			require.NoError(f, file.Close())
		},
		"a sparse inherited segment": func(f foreign) {
			f.sparse(f.in("inherited/1/journal-1-1.jsonl"), gib)
			f.journal(`"messages":9,"inherits":[9],"ops":[]`)
		},
		"sparse packs": func(f foreign) {
			packs, err := filepath.Glob(filepath.Join(f.dir, ".lopen/blobs/packs/*.pack"))
			require.NoError(f, err)
			require.NotEmpty(f, packs)
			for _, p := range packs {
				require.NoError(f, os.Truncate(p, 2*gib))
			}
		},
		"a sparse chain": func(f foreign) { f.sparse(".lopen/checkpoints/main.jsonl", 2*gib) },
		"a chain of nothing": func(f foreign) {
			f.put(".lopen/checkpoints/main.jsonl", bytes.Repeat([]byte("\n"), 64<<20))
		},
		"a chain of pins": func(f foreign) {
			data := f.get(".lopen/checkpoints/main.jsonl")
			for _, pinned := range []bool{true, false} {
				line, err := envelope.Format{Version: 1, Max: 1 << 10}.Encode(map[string]any{"pin": 1, "pinned": pinned})
				require.NoError(f, err)
				data = append(data, bytes.Repeat(line, 24<<20/len(line))...)
			}
			f.put(".lopen/checkpoints/main.jsonl", data)
		},
		"a chain of one line": func(f foreign) {
			f.put(".lopen/checkpoints/main.jsonl", append(bytes.Repeat([]byte("["), 64<<20), '\n'))
		},
		"attempts of nothing":   func(f foreign) { f.journal(`"attempts":[` + repeated(`{}`, 4<<20) + `],"ops":[]`) },
		"operations of nothing": func(f foreign) { f.journal(`"ops":[` + repeated(`{}`, 4<<20) + `]`) },
		"operations of little":  func(f foreign) { f.journal(`"ops":[` + repeated(`{"op":"x"}`, 1<<20) + `]`) },
		"strings of nothing":    func(f foreign) { f.journal(`"openCalls":[` + repeated(`""`, 4<<20) + `],"ops":[]`) },
		"children of nothing": func(f foreign) {
			f.journal(`"ops":[{"op":"children-changed","inserted":[` + repeated(`""`, 4<<20) + `]}]`)
		},
		"logs of nothing": func(f foreign) { f.journal(`"inherits":[` + repeated(`0`, 7<<20) + `],"ops":[]`) },
		"a member after the other": func(f foreign) {
			var all []string
			for i := range 1 << 18 {
				all = append(all, fmt.Sprintf(`"m%d":0`, i))
			}
			f.journal(`"ops":[{"op":"modified","set":{` + strings.Join(all, ",") + `}}]`)
		},
		"a long value": func(f foreign) { f.journal(`"event":"` + strings.Repeat("x", 15<<20) + `"`) },
		"children one by one": func(f foreign) {
			var all []string
			for i := range 5_000 {
				all = append(all, fmt.Sprintf(`"ops":[{"op":"task-created","task":{"id":"t%d","kind":"task","name":"","state":"pending"}},{"op":"children-changed","at":0,"removed":0,"inserted":["t%d"]}]`, i, i))
			}
			f.journal(all...)
		},
		"iterations one by one": func(f foreign) {
			all := []string{`"ops":[{"op":"iterations-added","keep":0,"iterations":[` + iterations(5_000) + `]}]`}
			for range 5_000 {
				all = append(all, `"ops":[{"op":"iterations-added","keep":4999,"iterations":[{"number":5000,"task":"a","attempt":1,"startedAt":"2026-02-14T09:30:00Z","duration":"1s"}]}]`)
			}
			f.journal(all...)
		},
		"records and holes": func(f foreign) {
			var b bytes.Buffer
			b.Write(bytes.TrimRight(f.get(f.in("journal-1-1.jsonl")), "\x00"))
			for i := range 20_000 {
				b.WriteString("x\n")
				b.Write(sealLine(fmt.Sprintf(`{"seq":%d,"epoch":1,"synced":%d,"prior":0,"schemaVersion":2`, 10+2*i, 1<<40)))
			}
			f.put(f.in("journal-1-1.jsonl"), b.Bytes())
		},
		"tasks in circles": func(f foreign) {
			var b strings.Builder
			for i := range 2_000 {
				fmt.Fprintf(&b, `{"id":"t%d","kind":"task","name":"","state":"pending","dependsOn":["t%d","t0"]},`, i, i+1)
			}
			f.state(`,"tasks":[` + strings.TrimSuffix(b.String(), ",") + `]`)
		},
		"deep values": func(f foreign) {
			deep := strings.Repeat("[", 60) + repeated("0", 1<<20) + strings.Repeat("]", 60)
			f.state(`,"unknown":` + deep + `,"tasks":[]`)
		},
		"tasks of 4 MiB": func(f foreign) {
			var b strings.Builder
			for i := 0; b.Len() < 4<<20; i++ {
				fmt.Fprintf(&b, `{"id":"%d","kind":"task","name":"","state":"pending"},`, i)
			}
			f.state(`,"tasks":[` + strings.TrimSuffix(b.String(), ",") + `]`)
		},
		"1,000 inherited segments with damaged headers": func(f foreign) {
			for i := range 1000 {
				f.put(f.in(fmt.Sprintf("inherited/1/journal-1-%d.jsonl", i+1)), append([]byte("x\n"), sealLine(fmt.Sprintf(`{"seq":%d,"epoch":1,"synced":0,"state":0,"messages":%d,"message":{"uuid":"a","timestamp":"2026-02-14T09:30:00Z","role":"user","content":"x"}`, i+2, i+2))...))
			}
			f.journal(`"messages":2000,"inherits":[2000],"ops":[]`)
		},
		"65,536 inherited logs": func(f foreign) { f.journal(`"messages":9,"inherits":[` + repeated("9", 1<<16) + `],"ops":[]`) },
		"2,000 segments": func(f foreign) {
			for i := range 2_000 {
				f.put(f.in(fmt.Sprintf("journal-1-%d.jsonl", i+2)), []byte("x\n"))
			}
		},
	} {
		if !*allHostile && slices.Contains(guards, name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newForeign(t)
			put(f)
			commands := reading
			if chain := strings.Contains(name, "chain") || name == "sparse packs"; chain && !*allHostile {
				commands = reading[:2]
			} else if !*allHostile {
				commands = reading[:1]
			}
			for _, args := range commands {
				args = append([]string(nil), args...)
				for i, a := range args {
					if a == "ID" {
						args[i] = f.id.String()
					}
				}
				b := runBounded(t, f.dir, args...)
				if name == "as it is" || os.Getenv("SHOW") != "" {
					t.Logf("%s%s", b.stdout[:min(300, len(b.stdout))], b.stderr[:min(400, len(b.stderr))])
				}
			}
		})
	}
}

func iterations(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"number":%d,"task":"a","attempt":1,"startedAt":"2026-02-14T09:30:00Z","duration":"1s"},`, i+1)
	}
	return strings.TrimSuffix(b.String(), ",")
}
