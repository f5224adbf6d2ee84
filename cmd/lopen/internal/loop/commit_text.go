package loop

import (
	"strings"
	"unicode"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/tasks"
	"github.com/lopen-dev/lopen/writer/plain"
)

// maxSubject is where the subject of a commit is cut, in runes, as git's own tools do.
const maxSubject = 72

// subject returns the first line of the message of a unit's commit.
func (r *runner) subject(unit string) string {
	full := oneLine(r.sess.Redact(r.name(unit)))
	if full == "" {
		return oneLine(r.sess.Redact(unit))
	}
	runes := []rune(full)
	if len(runes) <= maxSubject {
		return full
	}
	cut := strings.TrimSpace(string(runes[:maxSubject-1]))
	if i := strings.LastIndexByte(cut, ' '); i > len(cut)/2 {
		cut = strings.TrimSpace(cut[:i])
	}
	return cut + "…"
}

// message returns the message of a unit's commit, without trailers: the name as subject, and
// in full where that is cut; of several tasks their names; and the component.
func (r *runner) message(unit string, leaves []string) string {
	st := r.sess.State()
	parts := []string{r.subject(unit)}
	if full := oneLine(r.sess.Redact(r.name(unit))); full != "" && full != parts[0] {
		parts = append(parts, full)
	}
	if len(leaves) > 1 {
		var lines []string
		for _, id := range leaves {
			lines = append(lines, "- "+oneLine(r.sess.Redact(r.name(id))))
		}
		parts = append(parts, strings.Join(lines, "\n"))
	}
	if c, ok := st.Task(tasks.Component(st, unit)); ok && c.ID != unit {
		parts = append(parts, "Component: "+oneLine(r.sess.Redact(c.Name)))
	}
	return strings.Join(parts, "\n\n")
}

// oneLine returns a text without what is not visible and surrounding space.
func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(c rune) bool { return unicode.IsSpace(c) || !plain.Visible(c) }), " ")
}

// byHand returns the commands that commit paths.
func byHand(paths []string, subject string) string {
	if filesOf(paths) == someFiles {
		return "git status; git add -- FILES; git commit -m " + plain.Quote(subject)
	}
	return "git add -- " + filesOf(paths) + " && git commit -m " + plain.Quote(subject) + " -- " + filesOf(paths)
}

// someFiles stands in a command for files that are not named.
const someFiles = "FILES"

// filesOf returns paths as words of a command, or someFiles.
func filesOf(paths []string) string {
	const few = 10
	if len(paths) == 0 || len(paths) > few {
		return someFiles
	}
	return plain.Quote(paths...)
}

func shortHash(hash string) string { return hash[:min(len(hash), 10)] }

func shortHashes(hashes []string) (all []string) {
	for _, hash := range hashes {
		all = append(all, shortHash(hash))
	}
	return all
}

// CommitOf returns what the artifacts of an attempt say of commits: those that the agent made,
// and that of lopen. ok says that the newest of them is known.
func CommitOf(artifacts []string) (text, hash string, ok bool) {
	var parts []string
	for _, a := range artifacts {
		switch {
		case strings.HasPrefix(a, artifactCommit):
			hash, ok = a[len(artifactCommit):], true
			parts = append(parts, shortHash(hash))
		case strings.HasPrefix(a, artifactOwn):
			hash, ok = a[len(artifactOwn):], true
			parts = append(parts, shortHash(hash)+" by the agent")
		case strings.HasPrefix(a, artifactNoCommit):
			parts = append(parts, a)
		}
	}
	return strings.Join(parts, ", "), hash, ok
}

// CommitsOf returns what is known of the commits of a task's last attempt, or "".
func CommitsOf(t session.Task) (text, hash string) {
	if n := len(t.Log); n > 0 {
		text, hash, _ = CommitOf(t.Log[n-1].Artifacts)
	}
	return text, hash
}

// Uncommitted returns the IDs of the tasks that are done and whose commit failed.
func Uncommitted(st *session.State) (ids []string) {
	for t := range st.All() {
		if n := len(t.Log); n == 0 || t.State != session.TaskComplete {
			continue
		} else if a := t.Log[n-1].Artifacts; len(a) > 0 && strings.HasPrefix(a[len(a)-1], artifactNoCommit) {
			ids = append(ids, t.ID)
		}
	}
	return ids
}
