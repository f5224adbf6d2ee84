package prompt

import (
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/cache"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/plan/markdown"
	"github.com/lopen-dev/lopen/plan/research"
	"github.com/lopen-dev/lopen/writer/documents"
)

// maxResearch bounds how many research documents a prompt names.
const maxResearch = 64

// A document is a research document. Text is "" of one that the agent reads itself, if
// at all.
type document struct {
	Path, Topic, Text string
	Truncated         bool
}

// research gathers the module's research documents. Those that a link of the task or of what
// is above it names, and those about a section that the prompt holds, come with their text;
// the others are named.
func (s *Source) research(d *Draft, links []string, given []cache.Given) {
	folder := path.Dir(s.Spec)
	all, err := research.List(s.FS, folder)
	if err != nil {
		s.Warn("no-research", fmt.Sprintf("no research documents are named: %v", err))
	}
	a := appendix{Draft: d, fs: s.FS, left: maxText, has: map[string]bool{}}
	for _, link := range links {
		for _, name := range linkedResearch(link, folder, d.plan.Folder()) {
			if slices.ContainsFunc(given, func(g cache.Given) bool { return g.Path == name }) || a.read(name) {
				break // the sections that the link names, or the whole
			}
		}
	}
	about := func(of research.Section) bool {
		return slices.ContainsFunc(given, func(g cache.Given) bool { return g.Path == s.Spec && g.Header == of.Header })
	}
	for _, doc := range all {
		if slices.ContainsFunc(doc.Sections, about) {
			a.read(path.Join(folder, doc.File))
		}
	}
	a.name(folder, all)
}

// An appendix is the research documents of a draft.
type appendix struct {
	*Draft
	fs   fs.FS
	left room            // for their texts
	has  map[string]bool // by path
}

// read adds a document with its text, and returns whether the draft has it.
func (a *appendix) read(name string) bool {
	if a.has[name] || !a.left.fits(maxFrame+2*maxName) {
		return a.has[name]
	}
	src, err := documents.Read(a.fs, name, MaxDocument)
	if err != nil {
		return false
	}
	_, start := markdown.FrontMatter(src)
	doc := research.Parse(path.Base(name), src)
	text, cut := a.left.take(strings.TrimLeft(string(src[start:]), "\r\n"))
	a.has[name] = true
	a.add(name, doc, document{Path: oneLine(name, maxPath), Topic: oneLine(doc.Topic, maxName), Text: text, Truncated: cut})
	a.part("research", len(text), cut, oneLine(name, maxPath))
	return true
}

// name adds those of a folder's documents that the draft does not have, without their texts.
func (a *appendix) name(folder string, all []research.Document) {
	left, size := room(maxTopics), 0
	for _, doc := range all {
		name := path.Join(folder, doc.File)
		if a.has[name] {
			continue
		}
		entry := document{Path: oneLine(name, maxPath), Topic: oneLine(doc.Topic, maxName)}
		if len(a.p.Research) == maxResearch || !left.fits(len(entry.Path)+len(entry.Topic)+len("- : \n")) {
			break
		}
		size += len(entry.Path) + len(entry.Topic)
		a.add(name, doc, entry)
	}
	a.part("research, by name", size, false, folder)
}

func (a *appendix) add(name string, doc research.Document, entry document) {
	a.p.Research = append(a.p.Research, entry)
	a.Resources = append(a.Resources, session.Resource{Kind: "research", Path: name, SHA256: doc.SHA256, Bytes: doc.Bytes})
}

// linkedResearch are the files of the project that a link to a research document may mean:
// links are relative to the specification, to what the plan was made from, or to the
// project.
func linkedResearch(link, spec, from string) (names []string) {
	u, err := url.Parse(link)
	if err != nil || u.Scheme != "" || u.Host != "" {
		return nil
	}
	base := strings.ToLower(path.Base(u.Path))
	if !strings.HasPrefix(base, "research") || !strings.HasSuffix(base, ".md") {
		return nil
	}
	for _, folder := range []string{spec, from, "."} {
		if name := path.Join(folder, u.Path); folder != "" && fs.ValidPath(name) {
			names = append(names, name)
		}
	}
	return names
}
