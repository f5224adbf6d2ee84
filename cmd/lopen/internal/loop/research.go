package loop

import (
	"fmt"
	"path"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/plan/research"
)

// maxResearch bounds how many research documents a prompt names.
const maxResearch = 64

// A Document is a research document that the agent may read.
type Document struct{ Path, Topic string }

// research lists the module's research documents. They are read by the agent, if
// at all: a prompt names them only. What cannot be read is said once.
func (r *Runner) research() (docs []Document, resources []session.Resource) {
	folder := path.Dir(r.cfg.Spec)
	all, err := research.List(r.cfg.Docs, folder)
	if err != nil {
		r.once("no-research", fmt.Sprintf("no research documents are named: %v", err))
	}
	for _, d := range all[:min(len(all), maxResearch)] {
		name := path.Join(folder, d.File)
		docs = append(docs, Document{Path: name, Topic: d.Topic})
		resources = append(resources, session.Resource{Kind: "research", Path: name, SHA256: d.SHA256, Bytes: d.Bytes})
	}
	return docs, resources
}
