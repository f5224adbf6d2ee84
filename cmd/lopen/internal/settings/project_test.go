package settings_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/settings"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// directions are, for each setting that a project may tighten, the values from the loosest to the strictest.
var directions = map[string][]string{
	"checkpoint":        {"false", "true"},
	"checkpoint_bytes":  {"1", "1000", "0"},
	"journal_bytes":     {"1", "1000", "0"},
	"require_change":    {"false", "true"},
	"output":            {"false", "true"},
	"transcript":        {"true", "false"},
	"failure_threshold": {"0", "5", "1"},
	"max_iterations":    {"0", "100", "1"},
	"max_cost":          {"0", "2.5", "1"},
	"max_tokens":        {"0", "20", "1"},
	"day_cost":          {"0", "2.5", "1"},
	"day_tokens":        {"0", "20", "1"},
	"gate":              {"false", "true"},
	"check":             {`""`, `"x"`},
	"timeout":           {"0", `"2h"`, `"1s"`},
	"idle_timeout":      {"0", `"2h"`, `"1s"`},
	"wait":              {`"7h"`, `"1s"`, "0"},
	"replicate":         {`"async"`, `"task"`},
	"assessment_ttl":    {`"7h"`, `"1s"`, "0"},
}

// ofUser are the settings that a project does not have at all.
var ofUser = []string{"redact", "safe_directories", "agents", "on_event", "session_retention", "retention_days", "retention_bytes", "import_retention",
	"trash_days", "snapshot_retention", "backup_retention", "backup_days", "backup_bytes"}

// TestWhoseEachSettingIs fails for a setting of which nobody has decided whose it is.
func TestWhoseEachSettingIs(t *testing.T) {
	t.Parallel()
	free := []string{"auto_resume", "save_iteration_history", "snapshot_interval", "autosave_interval", "compression", "compression_level", "compression_threshold",
		"redact_patterns", "agent", "command", "unit", "replicate_timeout", "cache_bytes", "requirements_dir"}
	for _, k := range settings.Keys() {
		_, tightens := directions[k.Name]
		switch {
		case slices.Contains(ofUser, k.Name) || k.Name == "fallback" || k.Name == "unattended":
			require.Equal(t, "user", k.Whose(), k.Name)
		case tightens:
			require.True(t, strings.HasPrefix(k.Whose(), "stricter: "), "%s: %s", k.Name, k.Whose())
		default:
			require.Equal(t, "free", k.Whose(), k.Name)
			require.Contains(t, free, k.Name)
		}
	}
}

func config(name, value string) []byte { return fmt.Appendf(nil, `{%q: %s}`, name, value) }

// value is a setting as `config show --json` has it.
func value(t *testing.T, v *settings.Values, name string) string {
	t.Helper()
	for _, e := range v.All() {
		if e.Key == name {
			data, err := json.Marshal(e.Value)
			require.NoError(t, err)
			return string(data)
		}
	}
	require.Fail(t, "no such setting", name)
	return ""
}

// shownAs is a value as it is shown, however it was written.
func shownAs(t *testing.T, name, text string) string {
	t.Helper()
	v, err := settings.Load(settings.Sources{User: config(name, text)})
	require.NoError(t, err)
	return value(t, v, name)
}

func TestAProjectTightensAndNeverLoosens(t *testing.T) {
	t.Parallel()
	for name, values := range directions {
		for i, user := range values {
			for j, project := range values {
				v, err := settings.Load(settings.Sources{User: config(name, user), Project: config(name, project)})
				require.NoError(t, err)
				require.Equal(t, shownAs(t, name, values[max(i, j)]), value(t, v, name), "%s: the user has %s, the project %s", name, user, project)
				if j < i {
					require.Len(t, v.Ignored(), 1, "%s: one line says so", name)
					require.Contains(t, v.Ignored()[0], "lopen config set "+name)
					require.Equal(t, settings.SourceUser, v.Source(name))
				} else {
					require.Empty(t, v.Ignored(), name)
				}
			}
		}
	}
}

func TestWhatTheUserSetHereCounts(t *testing.T) {
	t.Parallel()
	here := func(name, value string, same bool) map[string]settings.Noted {
		return map[string]settings.Noted{name: {Value: strictjson.Value(value), Same: same}}
	}
	for name, values := range directions {
		loose, strict := values[0], values[len(values)-1]
		load := func(project []byte, noted map[string]settings.Noted) string {
			v, err := settings.Load(settings.Sources{User: config(name, strict), Project: project, Here: noted})
			require.NoError(t, err)
			return value(t, v, name)
		}
		require.Equal(t, shownAs(t, name, loose), load(config(name, loose), here(name, loose, true)), "%s: they may loosen it", name)
		require.Equal(t, shownAs(t, name, strict), load(config(name, loose), here(name, loose, false)), "%s: not for another project in its place", name)
		require.Equal(t, shownAs(t, name, strict), load(nil, here(name, loose, true)), "%s: what the project no longer says loosens nothing", name)

		load = func(project []byte, noted map[string]settings.Noted) string {
			v, err := settings.Load(settings.Sources{User: config(name, loose), Project: project, Here: noted})
			require.NoError(t, err)
			require.NotEmpty(t, v.Ignored(), "one line says so")
			return value(t, v, name)
		}
		require.Equal(t, shownAs(t, name, strict), load(config(name, loose), here(name, strict, true)), "%s: what they set stays", name)
		require.Equal(t, shownAs(t, name, strict), load(nil, here(name, strict, true)), "%s: also where it was taken out", name)
	}
}

// TestWhatWasSetInAnotherStore: what is stricter stays, so that nobody is rid of it by a copy in the place of the project.
// What is not counts for that one alone.
func TestWhatWasSetInAnotherStore(t *testing.T) {
	t.Parallel()
	for name, values := range directions {
		loose, strict := values[0], values[len(values)-1]
		load := func(user, set string) *settings.Values {
			v, err := settings.Load(settings.Sources{User: config(name, user), Here: map[string]settings.Noted{name: {Value: strictjson.Value(set)}}})
			require.NoError(t, err)
			return v
		}
		v := load(loose, strict)
		require.Equal(t, shownAs(t, name, strict), value(t, v, name))
		require.Len(t, v.Ignored(), 1, "one line says so")
		v = load(strict, loose)
		require.Equal(t, shownAs(t, name, strict), value(t, v, name))
		require.Empty(t, v.Ignored(), "nor is anything said")
	}
}

// TestWhatIsWrongInAProjectCountsForNothing: an agent may have written it, or a checkout, in the middle of a night.
func TestWhatIsWrongInAProjectCountsForNothing(t *testing.T) {
	t.Parallel()
	for project, says := range map[string]string{
		`{`: "cannot be read as a JSON object", `null`: "it is null", `{"schemaVersion": 99}`: "newer lopen", `{"max_cost": ""}`: "max_cost", `{"timeout": null}`: "timeout",
		`{"future_setting": 1}`: "future_setting", `{"redact_patterns": ["["]}`: "redact_patterns", `{"on_event": null}`: "on_event", `{"max_cost": 1, "max_cost": 9}`: "max_cost",
	} {
		v, err := settings.Load(settings.Sources{User: []byte(`{"max_cost": 5, "check": "make test"}`), Project: []byte(project)})
		require.NoError(t, err, project)
		require.Equal(t, "make test", v.Check)
		require.InDelta(t, 5, v.MaxCost, 0)
		require.Len(t, v.Ignored(), 1, project)
		require.Contains(t, v.Ignored()[0], says, project)
		require.Equal(t, v.Ignored(), v.Wrong(), project)
		_, err = settings.Load(settings.Sources{User: []byte(project)})
		require.Error(t, err, "the user's own is a slip of the user's: %s", project)
	}
	v, err := settings.Load(settings.Sources{Project: []byte(`{"future_setting": 1, "max_cost": 3}`)})
	require.NoError(t, err)
	require.InDelta(t, 3, v.MaxCost, 0, "what is right counts")
	v, err = settings.Load(settings.Sources{Unread: errors.New("it is a named pipe")})
	require.NoError(t, err)
	require.Equal(t, []string{".lopen/config.json: it is a named pipe: it counts for nothing"}, v.Ignored())
}

// TestAnotherCheckIsNotTheUsers: of two checks none is known to be stricter.
func TestAnotherCheckIsNotTheUsers(t *testing.T) {
	t.Parallel()
	v, err := settings.Load(settings.Sources{User: config("check", `"make test"`), Project: config("check", `"true"`)})
	require.NoError(t, err)
	require.Equal(t, "make test", v.Check)
	require.Len(t, v.Ignored(), 1)

	noted := map[string]settings.Noted{"check": {Value: strictjson.Value(`"go vet"`), Same: true}}
	v, err = settings.Load(settings.Sources{User: config("check", `"make test"`), Project: config("check", `"true"`), Here: noted})
	require.NoError(t, err)
	require.Equal(t, "go vet", v.Check, "what they set here is what they want here")
	require.Equal(t, settings.SourceHere, v.Source("check"))
}

func TestAProjectNamesAnAgentWhereTheUserNamesNone(t *testing.T) {
	t.Parallel()
	project := []byte(`{"command": ["theirs"], "fallback": ["codex"]}`)
	v, err := settings.Load(settings.Sources{Project: project})
	require.NoError(t, err)
	require.Equal(t, []string{"theirs"}, v.Command)
	require.Equal(t, settings.SourceProject, v.Source("command"), "it is asked about")
	require.Empty(t, v.Fallback)
	for _, mine := range []settings.Sources{
		{User: config("agent", `"claude"`)}, {User: config("command", `["mine"]`)}, {Environ: []string{"LOPEN_AGENT=claude"}}, {Flags: map[string]string{"agent": "claude"}},
	} {
		mine.Project = project
		v, err := settings.Load(mine)
		require.NoError(t, err)
		require.NotEqual(t, []string{"theirs"}, v.Command)
		require.Len(t, v.Ignored(), 2)
	}
	noted := map[string]settings.Noted{"command": {Value: strictjson.Value(`["theirs"]`), Same: true}, "fallback": {Value: strictjson.Value(`["codex"]`), Same: true}}
	v, err = settings.Load(settings.Sources{User: config("agent", `"claude"`), Project: project, Here: noted})
	require.NoError(t, err)
	require.Equal(t, []string{"theirs"}, v.Command)
	require.Equal(t, []string{"codex"}, v.Fallback)
}

func TestWhatIsTheUsersAlone(t *testing.T) {
	t.Parallel()
	for _, name := range ofUser {
		initial, err := settings.Load(settings.Sources{})
		require.NoError(t, err)
		other := map[string]string{"redact": "false", "safe_directories": `["*"]`, "agents": `{"x":{}}`, "on_event": `"evil"`}[name]
		if other == "" {
			other = "1"
		}
		v, err := settings.Load(settings.Sources{Project: config(name, other), Here: map[string]settings.Noted{name: {Value: strictjson.Value(other), Same: true}}})
		require.NoError(t, err)
		require.Equal(t, value(t, initial, name), value(t, v, name), name)
		require.Len(t, v.Ignored(), 1)
	}
}

// TestAProjectHasNoWordOnTheDefault is of a default that depends on who watches.
func TestAProjectHasNoWordOnTheDefault(t *testing.T) {
	t.Parallel()
	v, err := settings.Load(settings.Sources{Project: config("idle_timeout", `"24h"`)})
	require.NoError(t, err)
	require.Equal(t, 24*time.Hour, v.IdleTimeout)
	require.Equal(t, settings.SourceProject, v.Source("idle_timeout"), "an unattended run has a shorter one of its own")
}

// TestWhatAnAgentTypes: flags and variables of an agent tighten only.
func TestWhatAnAgentTypes(t *testing.T) {
	t.Parallel()
	for name, values := range directions {
		loose, strict := values[0], values[len(values)-1]
		for _, agent := range []bool{false, true} {
			typed := settings.Sources{User: config(name, strict), Agent: func() bool { return agent }, Flags: map[string]string{name: strings.Trim(loose, `"`)}}
			v, err := settings.Load(typed)
			require.NoError(t, err)
			want := shownAs(t, name, loose)
			if agent {
				want = shownAs(t, name, strict)
				require.Len(t, v.Ignored(), 1, name)
				require.Contains(t, v.Ignored()[0], "an agent does not loosen that")
			}
			require.Equal(t, want, value(t, v, name), "%s, by an agent: %v", name, agent)
		}
		v, err := settings.Load(settings.Sources{User: config(name, loose), Agent: func() bool { return true }, Flags: map[string]string{name: strings.Trim(strict, `"`)}})
		require.NoError(t, err)
		require.Equal(t, shownAs(t, name, strict), value(t, v, name), "%s: it may tighten", name)
	}
	v, err := settings.Load(settings.Sources{User: config("max_cost", "1"), Agent: func() bool { return true }, Environ: []string{"LOPEN_MAX_COST=9"}})
	require.NoError(t, err)
	require.InDelta(t, 1, v.MaxCost, 0)
}
