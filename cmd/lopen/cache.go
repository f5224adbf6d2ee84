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
	Histories   usageView `json:"histories"` // the index of search --all, which is the user's
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
	index       func(store string) (search.Usage, error) // of a store, or of the user's cache
}

// all asks all caches for their usage.
func (of caches) all(store string) (v cacheView, err error) {
	v.Path = filepath.Join(store, "cache")
	ask := func(to *usageView, cache func(string) (search.Usage, error), dir string) {
		if err == nil && dir != "" {
			var u search.Usage
			u, err = cache(dir)
			*to = viewOf(u)
		}
	}
	ask(&v.Sections, of.outlines, store)
	ask(&v.Assessments, of.assessments, store)
	ask(&v.Search, of.index, store)
	ask(&v.Histories, of.index, userCache())
	return v, err
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
				view, err := of.all(store.Path())
				if err != nil {
					return err
				}
				view.Limit = int64(values.CacheBytes)
				if a.out.machine() {
					return a.printJSON(view)
				}
				_, err = fmt.Fprintf(a.stdout, "sections     %s%d files, %s of %s\nassessments  %s%d, %s\nsearch       %s%d files, %s\nhistories    %s%d files, %s\n",
					verb, view.Sections.Entries, bytesText(view.Sections.Bytes), bytesText(view.Limit), verb, view.Assessments.Entries, bytesText(view.Assessments.Bytes),
					verb, view.Search.Entries, bytesText(view.Search.Bytes), verb, view.Histories.Entries, bytesText(view.Histories.Bytes))
				return err
			})
		},
	})
}
