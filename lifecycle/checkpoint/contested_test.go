package checkpoint

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A session is deleted with its checkpoints, and its intervals are one with those of others then.
// What it alone may have changed is still somebody else's: --contested leaves it as it is.
func TestContestedLeavesWhatADeletedSessionChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, other := w.worker("s", 0), w.worker("other", 0)
	s.edit("a", "1", "b", "1")
	before := s.begin()
	s.edit("b", "2")
	w.alive["s"] = false // it was killed
	other.begin()
	s.edit("a", "theirs")
	other.end()
	s.start()
	s.works("c", "1")
	contested := RewindOptions{Contested: true}
	require.Equal(t, []string{"a: foreign, other t1, in 3", "b: overwrite", "c: delete"}, summary(s.preview(before, contested)))

	s.forget(2, 3)
	who := "foreign, s t1, other t1, in 4"
	require.Equal(t, []string{"a: " + who, "b: " + who, "c: delete"}, summary(s.preview(before, contested)))
	require.Equal(t, []string{"a: " + who, "b: " + who, "c: delete"}, summary(s.preview(before, RewindOptions{})))
	require.Equal(t, []string{"a: overwrite", "b: overwrite", "c: delete"}, summary(s.preview(before, RewindOptions{Force: true})))
}

// What a rewind did that was cut off is not the own of a session that was forked before it.
func TestForkedBeforeARewindThatWasCutOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.worker("s", 0)
	s.edit("b", "a person's")
	target, after := s.works("b", "the task's")
	before := s.create(BeforeRewind, target.Number)
	plan, err := s.cps.Plan(t.Context(), target, before, s.cps.Tree(before.Root), after.Number, RewindOptions{})
	require.NoError(t, err)
	_, err = s.cps.Apply(t.Context(), plan)
	require.NoError(t, err)
	w.alive["s"] = false

	fork := w.worker("fork", before.Number)
	require.Equal(t, []string{"b: foreign, s's rewind, in 4"}, summary(fork.preview(after, RewindOptions{})))
}
