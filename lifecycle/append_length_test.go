package lifecycle_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// A message that is too long is refused before its credentials are looked for, which would take
// longer than all else, and whatever is left of it then.
func TestAppendChecksTheLengthFirst(t *testing.T) {
	t.Parallel()
	sess := create(t, initStore(t), "auth")
	text := "-----BEGIN RSA PRIVATE KEY-----\n" + strings.Repeat(strings.Repeat("A", 64)+"\n", 9<<20/65) + "-----END RSA PRIVATE KEY-----\n"
	require.Less(t, len(sess.Redact(text[:64<<10]+text[len(text)-40:])), 1<<10, "it would be short")
	err := sess.Append(&session.Message{Role: session.RoleUser, Content: session.Text(text)})
	require.Equal(t, writer.ClassInvalid, lifecycle.ClassOf(err))
	require.ErrorContains(t, err, "more than")
	event, err := strictjson.Marshal(map[string]string{"key": text})
	require.NoError(t, err)
	err = sess.AppendEvent(event)
	require.Equal(t, writer.ClassInvalid, lifecycle.ClassOf(err))
	require.ErrorContains(t, err, "more than")
	require.NoError(t, sess.Close(t.Context()))
}
