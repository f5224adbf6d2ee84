package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cache/search"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/find"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/documents"
	"github.com/lopen-dev/lopen/writer/plain"
)

func newSearch(a *app) *cobra.Command {
	s := searchCall{app: a}
	cmd := a.jsonFlags(&cobra.Command{
		Use:   "search [QUERY...]",
		Short: "Find what was said, tried and written, in sessions and plans",
		Long: `Find words in messages, calls of tools and their output, attempts, plans, research
and specifications of this project. The best of the newest 500 hits come first.

  read file      both words, anywhere in one message, attempt or section
  "read file"    these words, one behind the other
  auth*          words that begin so
  -test          not this word

Case and accents do not count; what is no letter or digit separates words.
--file finds what named or changed a file, by its path or the end of it; QUERY is not
needed then. Nothing found is no error: --json prints [].`,
		Args:        cobra.ArbitraryArgs,
		Annotations: map[string]string{takesDashedWords: "yes"},
		RunE:        s.run,
	})
	f := cmd.Flags()
	f.StringVar(&s.query.Module, "module", "", "of this `MODULE`")
	f.StringVar(&s.query.Role, "role", "", "`ROLE`: user, assistant, tool, system; of attempts done, failed")
	f.StringVar(&s.query.Tool, "tool", "", "calls of this `TOOL`, and what it answered")
	f.StringVar(&s.query.File, "file", "", "about the file with this `PATH`")
	f.StringVar(&s.since, "since", "", "since `WHEN`: 12h, 2d, 2026-02-13, or 2026-02-13T22:00")
	f.IntVar(&s.query.Limit, "limit", find.DefaultLimit, "print at most `N` hits")
	f.BoolVar(&s.all, "all", false, "the agents' own histories of all projects, where they lie")
	f.BoolVar(&s.query.NoIndex, "no-index", false, "read everything in place of using the index")
	f.SortFlags = false
	return cmd
}

// searchCall is one call of `search`.
type searchCall struct {
	*app
	query find.Query
	since string
	all   bool
}

func (s *searchCall) run(cmd *cobra.Command, args []string) (err error) {
	debug.SetGCPercent(400) // the collector would take a fifth of a warm search; see softLimit for a long one
	s.query.Text = strings.Join(args, " ")
	for _, name := range [...]string{"module", "role", "tool", "file", "since"} {
		if f := cmd.Flags().Lookup(name); f.Changed && f.Value.String() == "" {
			return usagef("--%s is empty: give it a value, or leave it out", name)
		}
	}
	if s.query.Limit < 1 {
		return usagef("--limit %d: give a number from 1 on", s.query.Limit)
	}
	if s.all && s.query.Module != "" {
		return usagef("--module is of this project, and --all searches what no module has: leave one of them out")
	}
	if s.query.Since, err = sinceTime(s.since, time.Now()); err != nil {
		return err
	}
	page, err := s.find(cmd.Context())
	if err != nil {
		return usageIf(err, search.ErrQuery)
	}
	s.notes(page)
	if s.out.machine() {
		s.others(page)
		return s.printJSON(page.Hits)
	}
	return s.print(page)
}

// notes prints what the reader has to know.
func (s *searchCall) notes(page *find.Page) {
	for _, note := range page.Notes {
		fmt.Fprintln(s.stderr, plain.Line(note))
	}
}

// find searches until ctx ends, also where a call of the system does not return.
func (s *searchCall) find(ctx context.Context) (*find.Page, error) {
	return awaitEnd(ctx, func() (*find.Page, error) { return s.look(ctx) })
}

func (s *searchCall) look(ctx context.Context) (page *find.Page, err error) {
	if s.all {
		return s.findAll(ctx)
	}
	store, err := s.open()
	if err != nil {
		return nil, err
	}
	defer release(store)
	home, here, err := s.places()
	if err != nil {
		return nil, err
	}
	s.fileIn(here)
	values, err := s.storeSettings(store, nil)
	if err != nil {
		return nil, err
	}
	f := find.Finder{Store: store, Cache: store.Path()}
	if f.Lopen, err = s.command(); err != nil {
		return nil, err
	}
	modules, err := store.Modules()
	if err != nil {
		return nil, err
	}
	atHome, err := documents.Open(home)
	if err != nil {
		return nil, err
	}
	defer atHome.Close()
	docs, err := documents.Open(here)
	if err != nil {
		return nil, err
	}
	defer docs.Close()
	f.Shown = func(d *find.File) string {
		if d.In == fs.FS(atHome) {
			return fromHere(home, d.Path)
		}
		return fromHere(here, d.Path)
	}
	f.Files, err = find.Modules(atHome, docs, modules, filepath.ToSlash(values.RequirementsDir), func(module string) string { return specPath(values, module) })
	if err != nil {
		fmt.Fprintf(s.stderr, "not all documents were searched: %v\n", err)
	}
	return f.Find(ctx, s.query)
}

// fileIn makes a path of where the person is one of the project. Another one is a path that an agent was given.
func (s *searchCall) fileIn(project string) {
	f := s.query.File
	if !filepath.IsAbs(f) && !strings.HasPrefix(f, "./") && !strings.HasPrefix(f, "../") {
		return
	}
	if f, err := s.within(project, f); err == nil {
		s.query.File = f
	}
}

// command is how lopen is called for this project from where the person is.
func (s *searchCall) command() ([]string, error) {
	if s.dir == "" {
		return []string{"lopen"}, nil
	}
	start, err := s.start()
	return []string{"lopen", "-C", start}, err
}

// fromHere is the path of a file as it can be typed: relative if the folder that the person is in has it.
func fromHere(project, name string) string {
	path := filepath.Join(project, filepath.FromSlash(name))
	wd, err := os.Getwd()
	if err != nil {
		return path
	}
	rel, err := filepath.Rel(wd, path)
	if err != nil || !filepath.IsLocal(rel) || rel[0] == '-' { // which sed would take for a flag
		return path
	}
	return rel
}

// print prints each hit: where it is, what it says, and how to open it.
func (s *searchCall) print(page *find.Page) error {
	w := s.stdout.Colored()
	style := func(code, text string) string {
		if text == "" || !s.colored(s.stdout) {
			return text
		}
		return "\x1b[" + code + "m" + text + "\x1b[0m"
	}
	for i := range page.Hits {
		h := &page.Hits[i]
		if _, err := fmt.Fprintf(w, "%s\n  %s\n  %s\n", style("1", where(h)), marked(h.Snippet, style), h.Open); err != nil {
			return err
		}
	}
	if len(page.Hits) == 0 {
		fmt.Fprintln(s.stderr, "nothing found")
	}
	s.others(page)
	return nil
}

// others says that there are hits which are not printed.
func (s *searchCall) others(page *find.Page) {
	switch {
	case page.More && s.all:
		fmt.Fprintf(s.stderr, "%d of more than %d; older ones were not ranked: narrow it with --since or more words\n", len(page.Hits), page.Found)
	case page.More:
		fmt.Fprintf(s.stderr, "%d of more than %d; older ones were not ranked: narrow it with --since, --module or more words\n", len(page.Hits), page.Found)
	case page.Found > len(page.Hits):
		fmt.Fprintf(s.stderr, "%d of %d; --limit shows more\n", len(page.Hits), page.Found)
	}
}

// where is the line that says where a hit is.
func where(h *find.Hit) string {
	parts := []string{h.Session}
	if h.Session == "" {
		parts[0] = h.Path
		if h.Line > 0 {
			parts[0] += fmt.Sprintf(":%d", h.Line)
		}
	}
	if !h.Time.IsZero() {
		parts = append(parts, h.Time.Local().Format("2006-01-02 15:04"))
	}
	if h.Kind != "message" {
		parts = append(parts, h.Kind)
	}
	parts = append(parts, h.Agent, h.Role, h.Tool, h.Cwd)
	if h.Origin != session.OriginRun {
		parts = append(parts, "("+string(h.Origin)+")")
	}
	line := ""
	for _, p := range parts {
		if p = strings.TrimSpace(p); p != "" {
			line += "  " + plain.Line(p)
		}
	}
	return strings.TrimPrefix(line, "  ")
}

// marked is a snippet with its words in bold, or between brackets where nothing is.
func marked(s search.Snippet, style func(code, text string) string) string {
	var b strings.Builder
	at := 0
	for _, m := range s.Marks {
		b.WriteString(plain.Line(s.Text[at:m[0]]))
		word := plain.Line(s.Text[m[0]:m[1]])
		if bold := style("1;33", word); bold != word {
			word = bold
		} else {
			word = "[" + word + "]"
		}
		b.WriteString(word)
		at = m[1]
	}
	b.WriteString(plain.Line(s.Text[at:]))
	return b.String()
}
