package settings_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/settings"
)

func TestLayers(t *testing.T) {
	t.Parallel()
	user, project := []byte(`{"failure_threshold": 3, "unit": "task"}`), []byte(`{"schemaVersion":1,"failure_threshold": 2, "check": "project"}`)
	env := []string{"LOPEN_FAILURE_THRESHOLD=5", "LOPEN_SESSION_ID=x", "LOPEN_MOOD=good", "OTHER=1"}
	v, err := settings.Load(settings.Sources{Project: project, User: user, Environ: env, Flags: map[string]string{"failure_threshold": "9"}})
	require.NoError(t, err)
	require.Equal(t, 9, v.FailureThreshold)
	require.Equal(t, settings.SourceFlag, v.Source("failure_threshold"))
	require.Equal(t, "project", v.Check)
	require.Equal(t, "task", v.Unit)
	require.Equal(t, settings.SourceUser, v.Source("unit"))
	require.Equal(t, 6*time.Hour, v.Wait)
	require.Equal(t, settings.SourceDefault, v.Source("wait"))
	require.True(t, v.AutoResume)

	v, err = settings.Load(settings.Sources{Project: project, User: user, Environ: env})
	require.NoError(t, err)
	require.Equal(t, 5, v.FailureThreshold)
	require.Equal(t, settings.SourceVariable, v.Source("failure_threshold"))
}

func TestBadValuesSayWhereAndWhatWouldBeRight(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		project, user string
		env, flag     string
		want          []string
	}{
		{project: `{"unit":"page"}`, want: []string{".lopen/config.json", "unit", "page", "leaf, task, component"}},
		{user: `{"failure_threshold":-1}`, want: []string{"the user's config.json", "failure_threshold", "from 0 on"}},
		{user: `{"failure_threshold":1.5}`, want: []string{"failure_threshold"}},
		{project: `{"auto_resume":"perhaps"}`, want: []string{"auto_resume", "true or false"}},
		{project: `{"auto_resum":true}`, want: []string{`"auto_resum"`, `nearest is "auto_resume"`}},
		{project: `{"check":7}`, want: []string{"check"}},
		{project: `{"requirements_dir":"a/.GIT/hooks"}`, want: []string{"not in .git"}},
		{project: `{"requirements_dir":"../x"}`, want: []string{"within the project"}},
		{env: "LOPEN_REQUIREMENTS_DIR=/x", want: []string{"within the project"}},
		{project: `{"schemaVersion":2}`, want: []string{"newer lopen"}},
		{project: `[]`, want: []string{"cannot be read as a JSON object: byte 0: want an object"}},
		{project: `null`, want: []string{"cannot be read as a JSON object: it is null"}},
		{project: "{\n  \"unit\": \"leaf\",\n  \"unit\": \"task\"\n}", want: []string{`.lopen/config.json: `, `line 3, column 3: the key "unit" stands twice`}},
		{project: "{\n  \"unit\": \"leaf\"\n  \"check\": \"\"\n}", want: []string{"line 3, column 3: invalid character"}},
		{env: "LOPEN_WAIT=soon", want: []string{"LOPEN_WAIT", "soon", "90s, 10m, 6h or 7d"}},
		{flag: "-3h", want: []string{"--timeout", "-3h"}},
	} {
		flags := map[string]string{}
		if c.flag != "" {
			flags["timeout"] = c.flag
		}
		v, err := settings.Load(settings.Sources{Project: []byte(c.project), User: []byte(c.user), Environ: []string{c.env}, Flags: flags})
		if c.project != "" {
			require.NoError(t, err)
			require.Len(t, v.Ignored(), 1)
			err = errors.New(v.Ignored()[0])
		}
		for _, w := range c.want {
			require.ErrorContains(t, err, w)
		}
	}
}

// TestBlanksAreNoCheck: a shell that is given blanks does nothing, and succeeds.
func TestBlanksAreNoCheck(t *testing.T) {
	t.Parallel()
	v, err := settings.Load(settings.Sources{Project: []byte(`{"check": " \t"}`), Flags: map[string]string{"check": " "}})
	require.NoError(t, err)
	require.Empty(t, v.Check)
}

func TestDurations(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{"0": 0, "90s": 90 * time.Second, "7d": 7 * 24 * time.Hour, "0.5d": 12 * time.Hour} {
		v, err := settings.Load(settings.Sources{Flags: map[string]string{"timeout": text}})
		require.NoError(t, err)
		require.Equal(t, want, v.Timeout, text)
	}
}

func TestSetIsReadAgain(t *testing.T) {
	t.Parallel()
	var config []byte
	var err error
	for _, kv := range [][2]string{{"check", "make test"}, {"unattended", "yes"}, {"wait", "2d"}, {"max_iterations", "7"}, {"check", "go test"}} {
		config, _, err = settings.Set(config, kv[0], kv[1])
		require.NoError(t, err)
	}
	v, err := settings.Load(settings.Sources{User: config})
	require.NoError(t, err)
	require.Equal(t, "go test", v.Check)
	require.True(t, v.Unattended)
	require.Equal(t, 48*time.Hour, v.Wait)
	require.Equal(t, 7, v.MaxIterations)
	_, _, err = settings.Set(config, "chek", "x")
	require.ErrorContains(t, err, `nearest is "check"`)
	_, _, err = settings.Set(config, "unit", "page")
	require.Error(t, err)
	_, _, err = settings.Set([]byte("{"), "unit", "leaf")
	require.Error(t, err)
}

// TestEverySettingHasItsDefault makes sure that a typed getter can be used on
// each and that every one can be set to what it is shown as.
func TestEverySettingHasItsDefault(t *testing.T) {
	t.Parallel()
	v, err := settings.Load(settings.Sources{})
	require.NoError(t, err)
	require.Len(t, v.All(), len(settings.Keys()))
	for _, e := range v.All() {
		require.Equal(t, settings.SourceDefault, e.Source)
		require.NotEmpty(t, e.Help)
	}
}

// A clone brings its config.json along: it must not switch redaction off, nor take
// away what the user has hidden.
func TestAProjectCannotSwitchRedactionOff(t *testing.T) {
	t.Parallel()
	project := []byte(`{"redact": false, "redact_patterns": ["theirs"]}`)
	v, err := settings.Load(settings.Sources{Project: project, User: []byte(`{"redact_patterns": ["mine"]}`)})
	require.NoError(t, err)
	require.True(t, v.Redact)
	require.Equal(t, settings.SourceDefault, v.Source("redact"))
	require.Equal(t, []string{"mine", "theirs"}, v.RedactPatterns)
	require.Len(t, v.Ignored(), 1)
	for _, want := range []string{".lopen/config.json", "redact is ignored", "LOPEN_REDACT"} {
		require.Contains(t, v.Ignored()[0], want)
	}

	v, err = settings.Load(settings.Sources{Project: project, User: []byte(`{"redact": false}`)})
	require.NoError(t, err)
	require.False(t, v.Redact, "the user may")
	v, err = settings.Load(settings.Sources{Project: project, Environ: []string{"LOPEN_REDACT=false"}})
	require.NoError(t, err)
	require.False(t, v.Redact, "the variable may")
}
