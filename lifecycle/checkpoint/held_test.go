package checkpoint

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHeld(t *testing.T) {
	t.Parallel()
	var h held
	reads := map[ID]int{}
	get := func(id ID, bytes int64) {
		m, err := h.get(id, func() (*Manifest, int64, error) {
			reads[id]++
			return &Manifest{Header: Header{ID: id}}, bytes, nil
		})
		require.NoError(t, err)
		require.Equal(t, id, m.ID)
	}
	get(1, maxHeld/2)
	get(2, maxHeld/2)
	get(1, maxHeld/2) // the one that was used longest ago is 2
	get(3, 1)
	get(1, maxHeld/2)
	require.Equal(t, map[ID]int{1: 1, 2: 1, 3: 1}, reads)
	get(2, maxHeld/2)
	require.Equal(t, 2, reads[2], "it had to go")
	get(4, 2*maxHeld)
	get(4, 2*maxHeld)
	require.Equal(t, 1, reads[4], "the one used last stays whatever its size")
	get(1, 1)
	require.Equal(t, 2, reads[1])
	h.forget(1)
	h.forget(7)
	get(1, 1)
	require.Equal(t, 3, reads[1])
	require.Equal(t, Access{Read: 7, Held: 3}, h.count)
	require.LessOrEqual(t, h.bytes, int64(maxHeld))

	wrong := errors.New("wrong")
	_, err := h.get(9, func() (*Manifest, int64, error) { return nil, 0, wrong })
	require.ErrorIs(t, err, wrong)
	get(9, 1)
}
