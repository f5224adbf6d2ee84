package criteria_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/plan"
	"github.com/lopen-dev/lopen/plan/convert"
	"github.com/lopen-dev/lopen/plan/criteria"
)

// read is Read of a specification that has to be readable.
func read(t require.TestingT, src string) *criteria.Specification {
	s, err := criteria.Read([]byte(src))
	require.NoError(t, err)
	return s
}

// made is the plan that is made of a specification, and its record.
func made(t require.TestingT, src string) (*plan.Plan, *criteria.Record) {
	content, err := convert.FromCriteria("m", []byte(src))
	require.NoError(t, err)
	p := plan.Parse(content)
	return p, criteria.Made(read(t, src), p)
}

// told are the differences, a line each.
func told(d *criteria.Diff) (lines []string) {
	for _, c := range append(d.Sections, d.Criteria...) {
		lines = append(lines, strings.TrimRight(fmt.Sprintf("%s %s|%s|%s|%s", c.What, c.Section, c.Text, c.Was, c.Task), "|"))
	}
	return lines
}

// did are the steps of an update, a line each.
func did(steps []criteria.Step) (lines []string) {
	for _, s := range steps {
		lines = append(lines, strings.TrimRight(fmt.Sprintf("%s %s|%s|%s", s.What, s.Task, s.Was, s.Why), "|"))
	}
	return lines
}

func untouched(string) criteria.Progress { return criteria.Untouched }

const spec = `# Auth

## Acceptance Criteria

- [ ] People log in with mail and password
- [ ] Sessions expire after 30 minutes
  - [ ] A test shows it
- [ ] People log out

## Limits

Few.
`

// What is no difference: the plan that was made of the one covers the other.
func TestSame(t *testing.T) {
	t.Parallel()
	for name, now := range map[string]string{
		"the same":            spec,
		"ticked":              strings.ReplaceAll(spec, "[ ]", "[x]"),
		"white space":         strings.ReplaceAll(spec, "30 minutes", "30\tminutes  "),
		"line ends":           strings.ReplaceAll(spec, "\n", "\r\n"),
		"a byte order mark":   "\xef\xbb\xbf" + spec,
		"other heads":         strings.Replace(spec, "## Limits\n", "Limits\n------\n", 1),
		"markup":              strings.Replace(spec, "People log out", "**People** log `out`", 1),
		"moved":               strings.Replace(strings.Replace(spec, "- [ ] People log out\n", "", 1), "- [ ] People log in", "- [ ] People log out\n- [ ] People log in", 1),
		"other bullets":       strings.ReplaceAll(spec, "- [ ]", "* [ ]"),
		"not nested any more": strings.Replace(spec, "  - [ ] A", "- [ ] A", 1),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, record := made(t, spec)
			d := record.Compare(read(t, now), p)
			require.Empty(t, told(d))
			require.True(t, d.Empty())
			next, _, steps, err := record.Compare(read(t, now), p).Update(p, untouched)
			require.NoError(t, err)
			require.Empty(t, steps)
			require.Same(t, p, next)
		})
	}
}

func TestUpdate(t *testing.T) {
	t.Parallel()
	const plain = "# Plan: m\n\n- [ ] People log in with mail and password\n- [ ] Sessions expire after 30 minutes\n  - [ ] A test shows it\n- [ ] People log out\n"
	tests := []struct {
		name      string
		from, to  string // in the specification
		plan      string // "" is the one that was made
		progress  map[string]criteria.Progress
		told, did []string
		want      string
	}{
		{
			name: "added", from: "- [ ] People log out", to: "- [ ] Passwords have 12 characters\n- [ ] People log out",
			told: []string{"added Acceptance Criteria|Passwords have 12 characters"},
			did:  []string{"added passwords-have-12-characters"},
			want: "# Plan: m\n\n- [ ] People log in with mail and password\n- [ ] Sessions expire after 30 minutes\n  - [ ] A test shows it\n- [ ] Passwords have 12 characters\n- [ ] People log out\n",
		},
		{
			name: "added first and ticked, with details and a note", from: "- [ ] People log in", to: "- [x] First <!-- after: x -->\n  given\n  - then\n- [ ] People log in",
			told: []string{"added Acceptance Criteria|First"},
			did:  []string{"added first"},
			want: "# Plan: m\n\n- [x] First <!-- after: x -->\n  given\n  - then\n" + plain[len("# Plan: m\n\n"):],
		},
		{
			name: "added beneath what is done", from: "  - [ ] A test shows it", to: "  - [ ] A test shows it\n  - [ ] The clock is mocked",
			plan: strings.ReplaceAll(plain, "[ ]", "[x]"),
			told: []string{"added Acceptance Criteria|The clock is mocked"},
			did:  []string{"added sessions-expire-after-30-minutes/the-clock-is-mocked"},
			want: "# Plan: m\n\n- [x] People log in with mail and password\n- [ ] Sessions expire after 30 minutes\n  - [x] A test shows it\n  - [ ] The clock is mocked\n- [x] People log out\n",
		},
		{
			name: "added with a section of its own", from: "## Limits", to: "## Mail\n\n### Acceptance Criteria\n\n1. Mails are sent\n   - soon\n2. Mails are signed\n\n## Limits",
			told: []string{"added Mail/Acceptance Criteria|Mails are sent", "added Mail/Acceptance Criteria|Mails are signed"},
			did:  []string{"added mail/mails-are-sent", "added mail/mails-are-signed"},
			want: plain + "\n## Mail\n\n- [ ] Mails are sent\n  - soon\n- [ ] Mails are signed\n",
		},
		{
			name: "added, and a person has it already", from: "- [ ] People log out", to: "- [ ] Passwords have 12 characters\n- [ ] People log out",
			plan: plain + "- [x] Passwords have  12 characters\n",
		},
		{
			name: "reworded", from: "30 minutes", to: "**5** minutes",
			told: []string{"reworded Acceptance Criteria|Sessions expire after 5 minutes|Sessions expire after 30 minutes|sessions-expire-after-30-minutes"},
			did:  []string{"reworded sessions-expire-after-5-minutes|sessions-expire-after-30-minutes"},
			want: strings.Replace(plain, "30 minutes", "**5** minutes", 1),
		},
		{
			name: "reworded when it is done", from: "People log out", to: "People log out everywhere",
			plan: strings.Replace(plain, "[ ] People log out", "[x] People log out", 1),
			told: []string{"reworded Acceptance Criteria|People log out everywhere|People log out|people-log-out"},
			did:  []string{"added people-log-out-everywhere||it was reworded; what was done stays as it is: people-log-out"},
			want: strings.Replace(plain, "[ ] People log out\n", "[x] People log out\n- [ ] People log out everywhere\n", 1),
		},
		{
			name: "reworded when it was skipped", from: "People log out", to: "People log out everywhere",
			progress: map[string]criteria.Progress{"people-log-out": criteria.Settled},
			told:     []string{"reworded Acceptance Criteria|People log out everywhere|People log out|people-log-out"},
			did:      []string{"added people-log-out-everywhere||it was reworded; what was done stays as it is: people-log-out"},
			want:     plain + "- [ ] People log out everywhere\n",
		},
		{
			name: "reworded, and a person took the task out", from: "People log out", to: "People log out everywhere",
			plan: strings.Replace(plain, "- [ ] People log out\n", "", 1),
			told: []string{"reworded Acceptance Criteria|People log out everywhere|People log out"},
			did:  []string{"added people-log-out-everywhere||it was reworded, and had no task of its own"},
			want: strings.Replace(plain, "People log out", "People log out everywhere", 1),
		},
		{
			name: "other details", from: "- [ ] People log out", to: "- [ ] People log out\n  with one click",
			told: []string{"reworded Acceptance Criteria|People log out|People log out|people-log-out"},
			did:  []string{"reworded people-log-out|people-log-out"},
			want: plain + "  with one click\n",
		},
		{
			name: "other details, and a person has some of their own", from: "- [ ] People log out", to: "- [ ] People log out\n  with one click",
			plan: plain + "  mine\n",
			told: []string{"reworded Acceptance Criteria|People log out|People log out|people-log-out"},
			did:  []string{"kept people-log-out|people-log-out|its details in the plan stay as they are"},
			want: plain + "  mine\n",
		},
		{
			name: "gone", from: "- [ ] People log out\n", to: "",
			told: []string{"gone Acceptance Criteria||People log out|people-log-out"},
			did:  []string{"removed people-log-out"},
			want: strings.Replace(plain, "- [ ] People log out\n", "", 1),
		},
		{
			name: "gone with what is in it", from: "- [ ] Sessions expire after 30 minutes\n  - [ ] A test shows it\n", to: "",
			told: []string{"gone Acceptance Criteria||Sessions expire after 30 minutes|sessions-expire-after-30-minutes", "gone Acceptance Criteria||A test shows it|sessions-expire-after-30-minutes/a-test-shows-it"},
			did:  []string{"removed sessions-expire-after-30-minutes", "removed sessions-expire-after-30-minutes/a-test-shows-it"},
			want: strings.Replace(plain, "- [ ] Sessions expire after 30 minutes\n  - [ ] A test shows it\n", "", 1),
		},
		{
			name: "gone when it is done", from: "- [ ] People log out\n", to: "",
			plan: strings.Replace(plain, "[ ] People log out", "[x] People log out", 1),
			told: []string{"gone Acceptance Criteria||People log out|people-log-out"},
			did:  []string{"kept people-log-out||it is done, or was skipped"},
		},
		{
			name: "gone when it failed", from: "- [ ] People log out\n", to: "",
			plan: strings.Replace(plain, "People log out", "People log out <!-- lopen: failed, 3 attempts -->", 1),
			told: []string{"gone Acceptance Criteria||People log out|people-log-out"},
			did:  []string{"kept people-log-out||it was attempted"},
		},
		{
			name: "gone when it was attempted", from: "- [ ] People log out\n", to: "",
			progress: map[string]criteria.Progress{"people-log-out": criteria.Tried},
			told:     []string{"gone Acceptance Criteria||People log out|people-log-out"},
			did:      []string{"kept people-log-out||it was attempted"},
		},
		{
			name: "gone, and a person changed it", from: "- [ ] People log out\n", to: "",
			plan: plain + "  mine\n",
			told: []string{"gone Acceptance Criteria||People log out|people-log-out"},
			did:  []string{"kept people-log-out||a person changed it"},
		},
		{
			name: "gone, and a person put a task into it", from: "- [ ] People log out\n", to: "",
			plan: plain + "  - [ ] mine\n",
			told: []string{"gone Acceptance Criteria||People log out|people-log-out"},
			did:  []string{"kept people-log-out||other tasks are beneath it"},
		},
		{
			name: "gone, and so is the task", from: "- [ ] People log out\n", to: "",
			plan: strings.Replace(plain, "- [ ] People log out\n", "- [ ] mine\n", 1),
		},
		{
			name: "something else in its place", from: "People log out", to: "Mails are sent",
			told: []string{"added Acceptance Criteria|Mails are sent", "gone Acceptance Criteria||People log out|people-log-out"},
			did:  []string{"added mails-are-sent", "removed people-log-out"},
			want: strings.Replace(plain, "People log out", "Mails are sent", 1),
		},
		{
			name: "a plan with line ends of its own", from: "- [ ] People log out", to: "- [ ] People log out\n- [ ] Last\n  of all",
			plan: strings.ReplaceAll(strings.TrimSuffix(plain, "\n"), "\n", "\r\n"),
			told: []string{"added Acceptance Criteria|Last"},
			did:  []string{"added last"},
			want: strings.ReplaceAll(plain+"- [ ] Last\n  of all", "\n", "\r\n"),
		},
		{
			name: "under a heading that a person made", from: "- [ ] People log out", to: "- [ ] People log out at once",
			plan: strings.Replace(plain, "- [ ]", "## Mine\n\n- [ ]", 1),
			told: []string{"reworded Acceptance Criteria|People log out at once|People log out|mine/people-log-out"},
			did:  []string{"reworded mine/people-log-out-at-once|mine/people-log-out"},
			want: strings.Replace(strings.Replace(plain, "- [ ]", "## Mine\n\n- [ ]", 1), "log out", "log out at once", 1),
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, record := made(t, spec)
			require.Equal(t, plain, string(p.Source()))
			if tt.plan != "" {
				p = plan.Parse([]byte(tt.plan))
			}
			require.Contains(t, spec, tt.from)
			now := read(t, strings.Replace(spec, tt.from, tt.to, 1))
			d := record.Compare(now, p)
			require.Equal(t, tt.told, told(d))
			next, after, steps, err := d.Update(p, func(id string) criteria.Progress { return tt.progress[id] })
			require.NoError(t, err)
			require.Equal(t, tt.did, did(steps))
			if tt.want == "" {
				tt.want = string(p.Source())
			}
			require.Equal(t, tt.want, string(next.Source()))
			require.Empty(t, told(after.Compare(now, next)), "once is enough")
			// The record was not written: what the plan has is not added again.
			again, _, _, err := record.Compare(now, next).Update(next, func(id string) criteria.Progress { return tt.progress[id] })
			require.NoError(t, err)
			require.Equal(t, tt.want, string(again.Source()))
		})
	}
}

// A heading that is a criterion, with all below it, is no section beside that: it is told of once.
func TestHeadingsThatAreCriteria(t *testing.T) {
	t.Parallel()
	spec := "# S\n\n## Acceptance Criteria\n\n### AC-1 People log in\n\nWith a password.\n\n### AC-2 People log out\n"
	p, record := made(t, spec)
	d := record.Compare(read(t, strings.Replace(spec, "a password", "a key", 1)), p)
	require.Equal(t, []string{"reworded Acceptance Criteria|AC-1 People log in|AC-1 People log in|ac-1-people-log-in"}, told(d))
	d = record.Compare(read(t, spec+"\n### AC-3 Mails are signed\n\n#### How\n\nWith a key.\n"), p)
	require.Equal(t, []string{"added Acceptance Criteria|AC-3 Mails are signed"}, told(d))
}
