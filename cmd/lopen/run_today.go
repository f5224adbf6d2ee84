package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/lifecycle"
)

// today returns what loop.Budget.Today is: the sums over the project's sessions. Those that
// were not changed today are not read.
func today(store *lifecycle.Store) func() (float64, int64, error) {
	return func() (cost float64, tokens int64, err error) {
		midnight := loop.Midnight(time.Now())
		infos, err := store.List() // the newest first, and behind those what cannot be read
		if err != nil {
			return 0, 0, err
		}
		var unread error
		for _, info := range infos {
			if info.Err == nil && info.UpdatedAt.Before(midnight) {
				continue
			}
			st, _, err := store.Read(info.ID)
			if err != nil {
				unread = errors.Join(unread, fmt.Errorf("session %s: %w", info.ID, err))
			}
			if st != nil {
				c, t := loop.SpentSince(st, midnight)
				cost, tokens = cost+c, tokens+t
			}
		}
		return cost, tokens, unread
	}
}
