package main

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cache/assess"
	"github.com/lopen-dev/lopen/cache/search"
	"github.com/lopen-dev/lopen/cache/sections"
	"github.com/lopen-dev/lopen/lifecycle"
)

func newCache(a *app) *cobra.Command {
	return group("cache", "Warm, look at and clear what is kept of documents", newCacheWarm(a), newCacheStatus(a), newCacheClear(a))
}

// cacheView is what `cache status --json` and `cache clear --json` print.
type cacheView struct {
	Path        string    `json:"path"`
	Sections    usageView `json:"sections"`
	Limit       int64     `json:"limit"` // bytes, of the sections
	Assessments usageView `json:"assessments"`
	Search      usageView `json:"search"`
}

type usageView struct {
	Entries int        `json:"entries"`
	Bytes   int64      `json:"bytes"`
	Oldest  *time.Time `json:"oldest,omitempty"`
}

func viewOf(u sections.Usage) usageView {
	v := usageView{Entries: u.Entries, Bytes: u.Bytes}
	if !u.Oldest.IsZero() {
		at := u.Oldest.UTC()
		v.Oldest = &at
	}
	return v
}

// caches are the functions of a command that asks all caches for their usage.
type caches struct {
	outlines    func(store string) (sections.Usage, error)
	assessments func(store string) (assess.Usage, error)
	index       func(store string) (search.Usage, error)
}

func (a *app) cacheCommand(name, short, verb string, of caches) *cobra.Command {
	return a.jsonFlags(&cobra.Command{
		Use: name, Short: short, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return a.readStore(func(store *lifecycle.Store) error {
				values, err := a.storeSettings(store, nil)
				if err != nil {
					return err
				}
				u, err := of.outlines(store.Path())
				if err != nil {
					return err
				}
				r, err := of.assessments(store.Path())
				if err != nil {
					return err
				}
				i, err := of.index(store.Path())
				if err != nil {
					return err
				}
				view := cacheView{Path: filepath.Join(store.Path(), "cache"), Sections: viewOf(u), Limit: int64(values.CacheBytes), Assessments: viewOf(r), Search: viewOf(i)}
				if a.out.machine() {
					return a.printJSON(view)
				}
				_, err = fmt.Fprintf(a.stdout, "sections     %s%d files, %s of %s\nassessments  %s%d, %s\nsearch       %s%d files, %s\n",
					verb, u.Entries, bytesText(u.Bytes), bytesText(view.Limit), verb, r.Entries, bytesText(r.Bytes), verb, i.Entries, bytesText(i.Bytes))
				return err
			})
		},
	})
}
