package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/fleet"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// String is for what rapid logs.
func (h *host) String() string   { return h.name }
func (h *host) GoString() string { return h.name }

// say appends messages, and does not wait.
func (h *host) say() {
	if h.sess == nil {
		return
	}
	for range rapid.IntRange(1, 3).Draw(h.t, "messages") {
		h.n++
		text := fmt.Sprintf("%s says %d", h.name, h.n)
		if h.sess.Append(message(text)) == nil {
			h.said = append(h.said, text)
		}
	}
	_ = h.sess.Change(session.TriggerTaskCompleted, func(e *session.Edit) error { // a paused session says so to Sync
		e.Header().TurnCount = h.n
		return nil
	})
}

// saves waits for the disk as well. Only a session that is fenced refuses.
func (h *host) saves() {
	h.say()
	h.syncs()
}

func (h *host) syncs() bool {
	if h.sess == nil {
		return false
	}
	said := h.said
	err := h.sess.Sync(context.Background())
	if err != nil {
		require.Equal(h.t, lifecycle.ClassFenced, lifecycle.ClassOf(err), "%v", err)
		return false
	}
	h.said = nil
	for _, text := range said {
		h.texts[text] = true
	}
	return true
}

// replicates saves something and waits for the database, which must have all then. What was replicated
// before may have been deleted or lost since.
func (h *host) replicates() {
	h.say()
	if !h.syncs() || h.cut {
		return
	}
	log := h.log()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err := h.sess.Replicated(ctx)
	var fenced *fleet.FencedError
	switch {
	case errors.As(err, &fenced), lifecycle.ClassOf(err) == lifecycle.ClassFenced, errors.Is(err, fleet.ErrGone):
	case err != nil:
		require.NoError(h.t, err)
	default:
		lines := h.lines()
		require.GreaterOrEqual(h.t, len(lines), len(log))
		require.True(h.t, slices.Equal(log, lines[:len(log)]), "it was replicated")
	}
}

func (h *host) cuts() {
	h.proxy.Drop()
	h.cut = true
}

func (h *host) heals() {
	h.proxy.Heal()
	h.cut = false
}

// losesReply has the next commit be without an answer.
func (h *host) losesReply() { h.proxy.CutReply("commit") }

// kill ends the process at once, and starts another one: with the files as they are, and nobody to
// give the lease back. The folder moves, since its locks are this process's.
func (h *host) kill() {
	h.proxy.Drop()
	if h.sess != nil {
		h.syncs()
		_ = h.sess.Flush(context.Background()) // what is being written could be copied in two halves
	}
	to := h.folder()
	require.NoError(h.t, copyFolder(h.dir, to))
	h.drop()
	require.NoError(h.t, os.RemoveAll(h.dir))
	h.said, h.dir = nil, to
	h.start()
	if !h.cut {
		h.proxy.Heal()
	}
}

// copyFolder copies a folder whose files may come and go.
func copyFolder(from, to string) error {
	return filepath.WalkDir(from, func(name string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(from, name)
		target := filepath.Join(to, rel)
		switch {
		case d.IsDir():
			return os.MkdirAll(target, 0o700)
		case d.Type()&fs.ModeSymlink != 0:
			link, err := os.Readlink(name)
			if err != nil {
				return nil //nolint:nilerr // it is gone
			}
			return os.Symlink(link, target)
		}
		data, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			err = os.WriteFile(target, data, 0o600)
		}
		return err
	})
}

// close closes the session. What a fenced one had not saved is lost with it.
func (h *host) close() {
	if h.sess == nil {
		return
	}
	said := h.said
	err := h.sess.Close(context.Background())
	if err == nil {
		for _, text := range said {
			h.texts[text] = true
		}
	} else {
		require.Equal(h.t, lifecycle.ClassFenced, lifecycle.ClassOf(err), "%v", err)
	}
	h.sess, h.said = nil, nil
}

// continues opens the session as it is here, whoever has the lease.
func (h *host) continues() {
	if h.sess != nil && h.sess.Paused() != nil {
		h.close()
	}
	if h.sess != nil || h.store.Incarnation(h.id) == "" {
		return
	}
	s, err := h.store.Open(h.id)
	require.NoError(h.t, err)
	h.ship(s)
}

// takes takes the session from the fleet and continues it here.
func (h *host) takes() {
	if h.sess != nil && h.sess.Paused() == nil {
		return // it has it, or does not know better
	}
	h.close()
	if h.pull() {
		h.continues()
	}
}

// pull pulls the session, and reports whether it came.
func (h *host) pull() bool {
	had := []string(nil)
	if h.store.Incarnation(h.id) != "" {
		had = h.log()
	}
	x, err := h.f.Find(context.Background(), h.id.String())
	var p fleet.Pulled
	held := ""
	if err == nil {
		require.NoError(h.t, h.db.QueryRow(context.Background(), `SELECT coalesce(max(host), '') FROM lopen_data.sessions WHERE project = $1 AND holder <> $2 AND lease_until > clock_timestamp() + interval '1 s'`,
			h.project, h.f.Holder()).Scan(&held))
		p, err = h.f.Pull(context.Background(), h.store, &x)
	}
	if had != nil {
		h.histories = append(h.histories, had)
	}
	var other *fleet.HeldError
	switch {
	case errors.As(err, &other), errors.Is(err, fleet.ErrNotFound):
		return false
	case err != nil && strings.Contains(err.Error(), "nothing of it is in the fleet yet"):
		return false
	case err != nil && fleetDown(err):
		return false
	}
	require.NoError(h.t, err)
	require.Empty(h.t, held, "somebody else has the lease")
	require.Equal(h.t, h.id, p.ID)
	require.Equal(h.t, p.Was == fleet.Diverged, p.Fork != session.ID{})
	return true
}

// fleetDown reports whether an error is of the network.
func fleetDown(err error) bool {
	text := err.Error()
	return slices.ContainsFunc([]string{"connect", "EOF", "reset", "closed", "broken pipe"}, func(s string) bool { return strings.Contains(text, s) })
}
