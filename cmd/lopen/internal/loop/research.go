package loop

import (
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/cache"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/plan/markdown"
	"github.com/lopen-dev/lopen/plan/research"
)

// maxResearch bounds how many research documents a prompt names.
const maxResearch = 64

// A Document is a research document. Text is "" of one that the agent reads itself, if
// at all.
type Document struct {
	Path, Topic, Text string
	Truncated         bool
}

// research gathers the module's research documents: with their text those that a link
// of the task or of what is above it names, and those that are about a section that is
// given along; the others by name. What cannot be read is said once.
func (r *Runner) research(g *gathered, links []string, given []cache.Given) {
	folder := path.Dir(r.cfg.Spec)
	all, err := research.List(r.cfg.Docs, folder)
	if err != nil {
		r.once("no-research", fmt.Sprintf("no research documents are named: %v", err))
	}
	text := room(maxText)
	told := map[string]bool{}
	tell := func(name string, src []byte) {
		_, start := markdown.FrontMatter(src)
		d := research.Parse(path.Base(name), src)
		body, cut := text.take(strings.TrimLeft(string(src[start:]), "\r\n"))
		told[name] = true
		doc := Document{Path: oneLine(name, maxPath), Topic: oneLine(d.Topic, maxName), Text: body, Truncated: cut}
		g.p.Research = append(g.p.Research, doc)
		g.resources = append(g.resources, session.Resource{Kind: "research", Path: name, SHA256: d.SHA256, Bytes: d.Bytes})
		g.part("research", len(body), cut, doc.Path)
	}
	read := func(name string) bool {
		if told[name] || !text.fits(maxFrame+2*maxName) {
			return told[name]
		}
		src, err := lifecycle.ReadDocument(r.cfg.Docs, name, MaxSpec)
		if err == nil {
			tell(name, src)
		}
		return err == nil
	}
	for _, link := range links {
		for _, name := range linkedResearch(link, folder, r.plan.Folder()) {
			if slices.ContainsFunc(given, func(g cache.Given) bool { return g.Path == name }) || read(name) {
				break // the sections that the link names, or the whole
			}
		}
	}
	about := func(s research.Section) bool {
		return slices.ContainsFunc(given, func(g cache.Given) bool { return g.Path == r.cfg.Spec && g.Header == s.Header })
	}
	for _, d := range all {
		if slices.ContainsFunc(d.Sections, about) {
			read(path.Join(folder, d.File))
		}
	}
	names, size := room(maxTopics), 0
	for _, d := range all {
		name := path.Join(folder, d.File)
		doc := Document{Path: oneLine(name, maxPath), Topic: oneLine(d.Topic, maxName)}
		if told[name] {
			continue
		}
		if len(g.p.Research) == maxResearch || !names.fits(len(doc.Path)+len(doc.Topic)+len("- : \n")) {
			break
		}
		size += len(doc.Path) + len(doc.Topic)
		g.p.Research = append(g.p.Research, doc)
		g.resources = append(g.resources, session.Resource{Kind: "research", Path: name, SHA256: d.SHA256, Bytes: d.Bytes})
	}
	g.part("research, by name", size, false, folder)
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
