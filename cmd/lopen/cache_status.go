package main

import (
	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cache/assess"
	"github.com/lopen-dev/lopen/cache/search"
	"github.com/lopen-dev/lopen/cache/sections"
)

func newCacheStatus(a *app) *cobra.Command {
	return a.cacheCommand("status", "Say what the caches take", "", caches{sections.Use, assess.Use, search.Use})
}
