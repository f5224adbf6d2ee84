package agent

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const anID = "11111111-2222-4333-8444-555555555555"

func words(s string) []string { return strings.Fields(s) }

// chosen is what Choose makes of a command line in words.
func chosen(t *testing.T, name, typed, check string) (*Agent, string) {
	t.Helper()
	a, note, err := Choose(name, words(typed), nil, check)
	require.NoError(t, err)
	return a, note
}

func TestChooseAddsWhatIsMissing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, typed, added, line string }{
		{"claude", "", "--output-format stream-json --verbose --include-partial-messages", "claude --output-format stream-json --verbose --include-partial-messages -p --permission-mode acceptEdits"},
		{"", "claude -p", "--output-format stream-json --verbose --include-partial-messages", "claude --output-format stream-json --verbose --include-partial-messages -p"},
		{"", "/opt/bin/claude --print", "--output-format stream-json --verbose --include-partial-messages", "/opt/bin/claude --output-format stream-json --verbose --include-partial-messages --print"},
		{"", "claude.exe --model opus", "-p --output-format stream-json --verbose --include-partial-messages", "claude.exe -p --output-format stream-json --verbose --include-partial-messages --model opus"},
		{"", "claude -p --output-format=stream-json --verbose --include-partial-messages", "", "claude -p --output-format=stream-json --verbose --include-partial-messages"},
		{"", "claude -p --append-system-prompt --verbose", "--output-format stream-json --verbose --include-partial-messages", "claude --output-format stream-json --verbose --include-partial-messages -p --append-system-prompt --verbose"},
		{"", "claude -p --add-dir a b -- --verbose", "--output-format stream-json --verbose --include-partial-messages", "claude --output-format stream-json --verbose --include-partial-messages -p --add-dir a b -- --verbose"},
		{"claude", "env A=1 claude -p", "--output-format stream-json --verbose --include-partial-messages", "env A=1 claude --output-format stream-json --verbose --include-partial-messages -p"},
		{"claude", "wrapper -p", "--output-format stream-json --verbose --include-partial-messages", "wrapper -p --output-format stream-json --verbose --include-partial-messages"},
		{"codex", "", "--json", "codex exec --json --sandbox workspace-write -"},
		{"", "codex exec -", "--json", "codex exec --json -"},
		{"", "codex -m o3 e --experimental-json -", "", "codex -m o3 e --experimental-json -"},
		{"", "codex -c model=exec exec -i a.png b.png", "--json", "codex -c model=exec exec --json -i a.png b.png"},
		{"opencode", "", "--format json", "opencode run --format json"},
		{"", "opencode run -m a/b hello", "--format json", "opencode run --format json -m a/b hello"},
		{"", "opencode run --format=json", "", "opencode run --format=json"},
	} {
		a, _ := chosen(t, c.name, c.typed, "")
		require.Equal(t, words(c.added), append([]string{}, a.Added()...), c.typed)
		require.Equal(t, words(c.line), a.Launch(Launch{}), c.typed)
		require.True(t, a.Knows(), c.typed)
		require.True(t, a.Resumes(), c.typed)
		if c.typed != "" {
			require.Equal(t, words(c.typed), a.Argv())
		}
	}
}

// What cannot be understood is left as it was typed.
func TestChooseLeavesAlone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, typed string }{
		{"none", "claude -p"}, {"", "env A=1 claude -p"}, {"", "sh -c claude"}, {"", "aider --yes"}, {"", "npx claude -p"}, {"", ""},
		{"", "codex"}, {"", "codex resume --last"}, {"", "opencode"}, {"", "opencode run --format default hello"},
	} {
		a, _ := chosen(t, c.name, c.typed, "go test ./...")
		require.Empty(t, a.Added(), c.typed)
		require.False(t, a.Knows(), c.typed)
		require.Equal(t, words(c.typed), append([]string{}, a.Launch(Launch{Budget: 1})...), c.typed)
	}
	a, note := chosen(t, "", "claude -p --output-format json --permission-mode plan", "")
	require.False(t, a.Knows())
	require.Contains(t, note, "--output-format json")
	require.Empty(t, a.Added())
	_, _, err := Choose("claud", nil, map[string]Profile{"aider": {}}, "")
	require.ErrorContains(t, err, `no agent is called "claud": there are aider, claude, codex, opencode`)
	_, err = Start("claud", nil)
	require.ErrorContains(t, err, `no agent is called "claud"`)
}

// No profile skips permissions or a sandbox by itself.
func TestNothingDangerousIsAdded(t *testing.T) {
	t.Parallel()
	for _, p := range builtIn() {
		for _, typed := range [][]string{nil, p.Start[:1], p.Start[:min(2, len(p.Start))]} {
			a, _, err := Choose(p.Name, typed, nil, "go test ./... && rm -rf /")
			require.NoError(t, err)
			line := strings.Join(a.Launch(Launch{Session: anID, Budget: 1}), " ")
			for _, bad := range []string{"dangerous", "bypass", "skip", "danger-full", "yolo", "--auto", "--trust", "rm -rf"} {
				require.NotContains(t, line, bad)
			}
		}
	}
}

func TestGrant(t *testing.T) {
	t.Parallel()
	for check, want := range map[string]string{
		"go test ./...": "Bash(go test ./...)", " make check ": "Bash(make check)", "./check.sh": "Bash(./check.sh)", "npm run test:unit": "Bash(npm run test:unit)",
		"pytest -k=a tests/x.py::t": "Bash(pytest -k=a tests/x.py::t)",
		"":                          "", "go test ./... && go vet ./...": "", "go test *": "", "go test $PKG": "", "go test ${PKG}": "", "a|b": "", "a;b": "", "a & b": "", "a\nb": "",
		"a > b": "", "a < b": "", "go test 'x'": "", `go test "x"`: "", "go test x\\ y": "", "go test `x`": "", "echo (x)": "", "a) b": "", "a, b": "", "go  test": "",
		"A=1 go test": "", "! go test": "", "if true": "", "eval x": "", ". x": "", "cd sub": "", "~/x": "", "a # b": "", "go test ?.go": "", "go [a]": "", "go {a,b}": "", "größe": "", "a\tb": "",
		strings.Repeat("a", 1001): "",
	} {
		a, note := chosen(t, "claude", "", check)
		i := slices.IndexFunc(a.Added(), func(s string) bool { return strings.HasPrefix(s, "--allowedTools") })
		if want == "" {
			require.Equal(t, -1, i, check)
			require.Equal(t, check == "", note == "", "%s: %s", check, note)
			continue
		}
		require.Equal(t, "--allowedTools="+want, a.Added()[i], check)
		require.Empty(t, note)
	}
	_, note := chosen(t, "claude", "", "go vet ./... && go test ./...")
	require.Equal(t, `claude may not run the check 'go vet ./... && go test ./...' itself, as it is more than one plain command: `+
		`--allowedTools 'Bash(go vet ./...)' 'Bash(go test ./...)' lets it`, note)
	_, note = chosen(t, "claude", "", "cd sub && make")
	require.Contains(t, note, "put it into a script")
}

func TestGrantIsNotTwice(t *testing.T) {
	t.Parallel()
	for typed, granted := range map[string]bool{
		"claude -p --dangerously-skip-permissions": false, "claude -p --permission-mode bypassPermissions": false, "claude -p --permission-mode=plan": true,
		"claude -p --allowedTools Bash": false, "claude -p --allowed-tools Edit,Bash(*)": false, "claude -p --allowedTools Edit Bash(go:*) --model x": false,
		"claude -p --allowedTools=Bash(gofmt:*)": true, "claude -p --allowedTools Edit Write": true, "claude -p --disallowedTools Bash": false,
		"claude -p --allowedTools BashOutput": true, "claude --allowedTools Bash(rm:*) -p": true,
	} {
		a, _ := chosen(t, "", typed, "go test ./...")
		require.Equal(t, granted, slices.Contains(a.Added(), "--allowedTools=Bash(go test ./...)"), typed)
		line := a.Launch(Launch{})
		require.Equal(t, words(typed), slices.DeleteFunc(line, func(s string) bool { return slices.Contains(a.Added(), s) && !slices.Contains(words(typed), s) }), typed)
	}
}

func TestLaunch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		typed string
		l     Launch
		want  string
	}{
		{"claude -p --output-format stream-json --verbose --include-partial-messages", Launch{Session: anID, New: true, Budget: 1.5},
			"claude --session-id " + anID + " --max-budget-usd 1.5000 -p --output-format stream-json --verbose --include-partial-messages"},
		{"claude -p --output-format stream-json --verbose --include-partial-messages --max-budget-usd=3", Launch{Session: anID, Budget: 1.5},
			"claude --resume " + anID + " -p --output-format stream-json --verbose --include-partial-messages --max-budget-usd=3"},
		{"claude -p --output-format stream-json --verbose --include-partial-messages -c", Launch{Session: anID, Budget: 0.0000001}, "claude --max-budget-usd 0.0001 -p --output-format stream-json --verbose --include-partial-messages -c"},
		{"claude -p --output-format stream-json --verbose --include-partial-messages --no-session-persistence", Launch{Session: anID}, "claude -p --output-format stream-json --verbose --include-partial-messages --no-session-persistence"},
		{"claude -p --output-format stream-json --verbose --include-partial-messages", Launch{Session: "--model"}, "claude -p --output-format stream-json --verbose --include-partial-messages"},
		{"codex exec --json --sandbox workspace-write -", Launch{Session: anID, Budget: 1}, "codex exec --sandbox workspace-write --json resume " + anID + " -"},
		{"codex exec - --json -s workspace-write", Launch{Session: anID}, "codex exec -s workspace-write --json resume " + anID + " -"},
		{"codex exec --json do", Launch{Session: anID}, "codex exec --json resume " + anID + " do"},
		{"codex exec --json -i a b", Launch{Session: anID}, "codex exec -i a b --json resume " + anID + " -"},
		{"codex exec --json -- do", Launch{Session: anID}, "codex exec --json resume " + anID + " -- do"},
		{"codex exec --json --ephemeral -", Launch{Session: anID}, "codex exec --json --ephemeral -"},
		{"codex exec --json resume --last -", Launch{Session: anID}, "codex exec --json resume --last -"},
		{"opencode run --format json hello", Launch{Session: "ses_1", Budget: 1}, "opencode run --session ses_1 --format json hello"},
		{"opencode --print-logs run --format json", Launch{Session: "ses_1"}, "opencode --print-logs run --session ses_1 --format json"},
		{"opencode run --format json -s ses_2", Launch{Session: "ses_1"}, "opencode run --format json -s ses_2"},
	} {
		a, _ := chosen(t, "", c.typed, "")
		require.Equal(t, words(c.want), a.Launch(c.l), c.typed)
		require.Equal(t, a.Launch(c.l), a.Launch(c.l)) // the agent is as it was
	}
}

func TestAccessors(t *testing.T) {
	t.Parallel()
	a, _ := chosen(t, "", "/opt/claude -p", "")
	require.Equal(t, []string{"/opt/claude", "auth", "status"}, a.Ready())
	require.Equal(t, []string{"claude", "--resume", anID}, a.Open(anID))
	require.Nil(t, a.Open("-x"))
	require.Nil(t, a.Open("$(x)"))
	require.True(t, a.Stdin())
	require.Regexp(t, `^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, a.NewSession())
	require.NotEqual(t, a.NewSession(), a.NewSession())
	a, _ = chosen(t, "claude", "env KEY=1 claude -p", "")
	require.Nil(t, a.Ready()) // what env brings is not there
	a, _ = chosen(t, "codex", "", "")
	require.Empty(t, a.NewSession())
	require.Equal(t, []string{"codex", "resume", anID}, a.Open(anID))
	require.Equal(t, "codex login", a.Login())
	a, _ = chosen(t, "none", "x", "")
	require.Equal(t, None, a.Name())
	require.Nil(t, a.Open(anID))
	_, note := chosen(t, "", "codex exec -", "")
	require.Contains(t, note, "--sandbox workspace-write")
	_, note = chosen(t, "", "claude -p", "")
	require.Contains(t, note, "--permission-mode acceptEdits")
}
