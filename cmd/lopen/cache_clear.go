package main

import (
	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cache/assess"
	"github.com/lopen-dev/lopen/cache/search"
	"github.com/lopen-dev/lopen/cache/sections"
)

func newCacheClear(a *app) *cobra.Command {
	return a.cacheCommand("clear", "Remove what the caches hold: all of it can be derived again", "removed ", caches{sections.Clear, assess.Clear, search.Clear})
}
