package turns_test

import (
	"os"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/turns"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestParse(t *testing.T) {
	t.Parallel()
	e, err := turns.Parse([]byte(`{"session_id":"s","cwd":"/p","hook_event_name":"StopFailure","error":"rate_limit","error_details":"429","new":[1]}` + "\n"))
	require.NoError(t, err)
	require.Equal(t, "rate_limit: 429", e.Failure())
	for in, want := range map[string]string{
		``:                           "is not an event",
		`[]`:                         "is not an event",
		`{"session_id":"s"}`:         "hook_event_name is missing",
		`{"hook_event_name":"Stop"}`: "session_id has 1 to 128 printable characters",
		`{"hook_event_name":"Stop","session_id":"a b"}`:                              "session_id",
		`{"hook_event_name":"Stop","session_id":"../\u0000"}`:                        "session_id",
		`{"hook_event_name":"Stop","session_id":"` + strings.Repeat("a", 129) + `"}`: "session_id",
		`{"hook_event_name":7,"session_id":"s"}`:                                     "is not an event",
	} {
		_, err := turns.Parse([]byte(in))
		require.ErrorContains(t, err, want, in)
	}
	require.Equal(t, "the agent says no reason", (&turns.Event{}).Failure())
}

// FuzzParse requires that what is taken of an event names a session that can be shown.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"session_id":"0f8fad5b-d9cb-469f-a165-70867728950e","transcript_path":"/t.jsonl","cwd":"/p","hook_event_name":"UserPromptSubmit","prompt":"a\nb"}`))
	f.Add([]byte(`{"session_id":"a\u001b[2J","hook_event_name":"Stop"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := turns.Parse(data)
		if err != nil {
			require.Nil(t, e)
			return
		}
		require.NotEmpty(t, e.Name)
		require.NotEmpty(t, e.Session)
		require.False(t, strings.ContainsFunc(e.Session, func(r rune) bool { return !unicode.IsPrint(r) }))
	})
}

func TestNamed(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"prompt:3": "prompt-3", "prompt:": "prompt:", "prompt:x": "prompt:x", "3": "3", "last": "last"} {
		require.Equal(t, want, turns.Named(in))
	}
	for in, want := range map[string]int{"prompt-12": 12, "prompt-0": 0, "prompt-x": 0, "12": 0} {
		n, ok := turns.Prompt(in)
		require.Equal(t, want > 0, ok, in)
		if ok {
			require.Equal(t, want, n)
		}
	}
}

// The agent is the nearest process above that is no shell.
func TestAgentProcess(t *testing.T) {
	t.Parallel()
	require.Positive(t, turns.AgentProcess())
	require.NotEqual(t, os.Getpid(), turns.AgentProcess())
}
