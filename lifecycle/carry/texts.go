package carry

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/lifecycle/history"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/writer/envelope"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// texts writes JSON of ours anew, by its shape: credentials hidden, and with another session
// and other paths where they are asked for. All else keeps its bytes.
type texts struct {
	Rewriting
	// snapshot writes the snapshot of a record anew, given its checksum, and returns the new one.
	snapshot func(id history.ID, sum string) (string, error)
	at       history.ID // the record that is written; zero in an inherited log
	tasks    taskIDs
	without  []string // members that are left out, of whichever object

	r   *strictjson.Reader
	out []byte
	err error // of a rule
}

// object returns what takes the place of a JSON object. The result is valid until the next call.
func (t *texts) object(object []byte, s *shape) ([]byte, error) {
	if t.Redact != nil {
		t.r = strictjson.NewSharing(object)
		t.learn(s)
	}
	t.r, t.out, t.err = strictjson.NewSharing(object), t.out[:0], nil
	t.members(s)
	t.r.End()
	err := t.r.Err()
	if t.err != nil {
		return nil, t.err
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", envelope.ErrCorrupt, err)
	}
	return t.out, nil
}

// sealed is object for the content of a file that ends with its checksum.
func (t *texts) sealed(file []byte, s *shape) ([]byte, error) {
	open, err := envelope.Checksum.Open(file)
	if err != nil {
		return nil, err
	}
	out, err := t.object(append(slices.Clip(open), '}'), s)
	if err != nil {
		return nil, err
	}
	return envelope.Checksum.Append(slices.Clone(out[:len(out)-1])), nil
}

// members writes an object.
func (t *texts) members(s *shape) {
	t.out = append(t.out, '{')
	t.r.Object(func(key string) {
		if t.NoCheckpoints && slices.Contains(s.checkpoints, key) || slices.Contains(t.without, key) {
			t.r.Value()
			return
		}
		if t.out[len(t.out)-1] != '{' {
			t.out = append(t.out, ',')
		}
		t.member(key, s)
	})
	t.out = append(t.out, '}')
}

// list writes a list of objects.
func (t *texts) list(s *shape) {
	t.out = append(t.out, '[')
	t.r.Array(func() {
		if t.out[len(t.out)-1] != '[' {
			t.out = append(t.out, ',')
		}
		t.members(s)
	})
	t.out = append(t.out, ']')
}

func (t *texts) member(key string, s *shape) {
	begin := len(t.out)
	t.out = append(append(t.out, quoted(key)...), ':')
	switch {
	case s.inner[key] != nil:
		t.members(s.inner[key])
	case s.lists[key] != nil:
		t.list(s.lists[key])
	case s.own[key] != nil:
		t.apply(s.own[key])
	case slices.Contains(s.kept, key):
		t.out = append(t.out, t.r.Value()...)
	case slices.Contains(s.hashes, key):
		t.apply((*texts).hash)
	case slices.Contains(s.ids, key):
		t.apply((*texts).idsOfTasks)
	case slices.Contains(s.texts, key):
		t.apply((*texts).text)
	default:
		value := t.r.Value()
		t.out = append(t.out[:begin], t.named(key, value)...)
	}
}

// apply writes what a rule makes of the next value.
func (t *texts) apply(do rule) {
	value := t.r.Value()
	if t.r.Err() != nil {
		return
	}
	out, err := do(t, value)
	if err != nil {
		t.err = err
		t.r.Stop()
	}
	t.out = append(t.out, out...)
}

func quoted(text string) []byte {
	if strictjson.Plain(text) {
		return append(append([]byte{'"'}, text...), '"')
	}
	out, _ := strictjson.Marshal(text) // cannot fail for a text that was read
	return out
}

// roomFor is what a text may have at least once it is redacted, in bytes: a text that was as
// long as its field allows may get longer.
const roomFor = 16 << 10

// fits returns a redacted value, or less of it if it does not fit into the place of the one before.
func fits(was string, now []byte) []byte {
	if now[0] != '"' {
		if len(now) > max(len(was), roomFor) {
			return []byte("{}")
		}
		return now
	}
	text, most := textOf(now), max(len(textOf([]byte(was))), roomFor)
	if len(text) <= most {
		return now
	}
	return quoted(strings.ToValidUTF8(text[:most], ""))
}

func textOf(value []byte) string { return strictjson.NewReader(value).Text() }

// text hides what is a credential in a text or a list of texts.
func (t *texts) text(value string) ([]byte, error) {
	now, n, err := t.Redact.JSON([]byte(value))
	if err != nil || n == 0 {
		return []byte(value), err
	}
	if now[0] == '[' { // within the bounds of the list
		return now, nil
	}
	return fits(value, now), nil
}

// hash is text, except that a hash stays even where a pattern of the caller's matches it.
func (t *texts) hash(value string) ([]byte, error) {
	if strings.Trim(value, `"0123456789abcdef`) == "" {
		return []byte(value), nil
	}
	return t.text(value)
}

// data hides what is a credential in an object of the caller's own.
func (t *texts) data(value string) ([]byte, error) {
	now, n, err := t.Redact.JSON([]byte(value))
	if err != nil || n == 0 {
		return []byte(value), err
	}
	return fits(value, now), nil
}

// named returns a member whose name is not known.
func (t *texts) named(key, value string) []byte {
	member := append(append(quoted(key), ':'), value...)
	if t.Redact == nil || value == "" || strings.IndexByte(`"[{`, value[0]) < 0 {
		return member
	}
	object, n, err := t.Redact.JSON(append(append([]byte{'{'}, member...), '}'))
	if err != nil || n == 0 {
		return member // an error of the value is that of the Reader
	}
	return object[1 : len(object)-1]
}

// sessionID is the ID in the files of a snapshot.
func (t *texts) sessionID(string) ([]byte, error) { return quoted(t.ID.String()), nil }

// origin is the ID of the session that a fork comes from.
func (t *texts) origin(value string) ([]byte, error) {
	if now, changed := t.IDs[textOf([]byte(value))]; changed {
		return quoted(now), nil
	}
	return []byte(value), nil
}

// command hides what is a credential in the words of a command.
func (t *texts) command(value string) ([]byte, error) {
	var argv []string
	if err := strictjson.Unmarshal([]byte(value), &argv); err != nil {
		return nil, err
	}
	argv, n := t.Redact.Args(argv)
	if n == 0 {
		return []byte(value), nil
	}
	return strictjson.Marshal(argv)
}

// settingsCommand is the command that the next run starts.
func (t *texts) settingsCommand(value string) ([]byte, error) {
	var argv []string
	if len(t.Paths[0]) < 2 { // none, or the root
		return t.command(value)
	}
	if err := strictjson.Unmarshal([]byte(value), &argv); err != nil {
		return nil, err
	}
	for i := range argv {
		argv[i] = moved(argv[i], t.Paths[0], t.Paths[1])
	}
	now, err := strictjson.Marshal(argv)
	if err != nil {
		return nil, err
	}
	return t.command(string(now))
}

// settingsCheck is the check that the next run starts, one line for a shell.
func (t *texts) settingsCheck(value string) ([]byte, error) {
	r := strictjson.NewReader([]byte(value))
	check := r.Text()
	if r.Err() != nil {
		return nil, r.Err()
	}
	if len(t.Paths[0]) > 1 {
		value = string(quoted(moved(check, t.Paths[0], t.Paths[1])))
	}
	return t.text(value)
}

// moved returns a word or a line of a shell with another project folder in the place of each
// path that begins with the old one.
func moved(text, from, to string) string {
	const before, after = " \t\n'\"=:;|&(<>", " \t\n'\":;|&)<>/"
	var out strings.Builder
	at := 0
	for {
		i := strings.Index(text[at:], from)
		if i < 0 {
			return out.String() + text[at:]
		}
		i += at
		end := i + len(from)
		whole := (i == 0 || strings.IndexByte(before, text[i-1]) >= 0) && (end == len(text) || strings.IndexByte(after, text[end]) >= 0)
		out.WriteString(text[at:i])
		if whole {
			out.WriteString(to)
		} else {
			out.WriteString(from)
		}
		at = end
	}
}

// calls are the IDs of tool calls, as messages have them.
func (t *texts) calls(value string) ([]byte, error) {
	var all []string
	if err := strictjson.Unmarshal([]byte(value), &all); err != nil {
		return nil, err
	}
	for i := range all {
		all[i], _ = t.Redact.String(all[i])
	}
	return strictjson.Marshal(all)
}

// paths are those of a rewind: bytes, which need not be UTF-8.
func (t *texts) paths(value string) ([]byte, error) {
	var all [][]byte
	if err := strictjson.Unmarshal([]byte(value), &all); err != nil {
		return nil, err
	}
	for i := range all {
		all[i], _ = t.Redact.Bytes(all[i])
	}
	return strictjson.Marshal(all)
}

// snapshotRef names the snapshot of a record that is written.
func (t *texts) snapshotRef(value string) ([]byte, error) {
	var ref record.SnapshotRef
	if err := strictjson.Unmarshal([]byte(value), &ref); err != nil {
		return nil, err
	}
	if t.at == (history.ID{}) {
		return []byte(value), nil // an inherited log has its messages only
	}
	r, out := t.r, t.out // the snapshot is written with them
	t.out = nil
	var err error
	ref.SHA256, err = t.snapshot(t.at, ref.SHA256)
	t.r, t.out = r, out
	if err != nil {
		return nil, err
	}
	return strictjson.Marshal(ref)
}
