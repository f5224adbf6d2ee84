package find

import (
	"maps"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/cache/search"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// paths are those that a call of a tool names.
type paths struct{ all []string }

// maxPaths bounds those of one message.
const maxPaths = 200

func (p *paths) add(path string) {
	if path = strings.TrimSpace(path); path == "" || len(path) > 4096 || len(p.all) >= maxPaths || strings.ContainsAny(path, "\n\x00") {
		return
	}
	if path = search.Path(path); !slices.Contains(p.all, path) {
		p.all = append(p.all, path)
	}
}

// pathNames are the arguments that are paths, of the tools of the agents there are.
var pathNames = map[string]bool{"file_path": true, "filePath": true, "path": true, "notebook_path": true, "filename": true, "file": true}

// patch takes the paths out of the headers of a patch.
func (p *paths) patch(text string) {
	if !strings.Contains(text, "*** ") && !strings.Contains(text, "+++ ") {
		return
	}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		for _, head := range [...]string{"*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: ", "+++ b/", "--- a/"} {
			if path, ok := strings.CutPrefix(line, head); ok {
				p.add(path)
			}
		}
	}
}

// Text is what of a message's content is text.
func Text(content strictjson.Value) string {
	var b strings.Builder
	addContent(&b, content)
	return b.String()
}

// addContent adds what of a message's content is text: the model's API may have blocks in
// place of a string.
func addContent(b *strings.Builder, v strictjson.Value) {
	if len(v) == 0 {
		return
	}
	var tree any
	if strictjson.UnmarshalForeign(v, &tree) != nil {
		return
	}
	w := walker{text: b}
	w.walk("", tree)
}

// addArguments adds the arguments of a call.
func addArguments(b *strings.Builder, p *paths, v strictjson.Value) {
	if len(v) == 0 {
		return
	}
	var tree any
	if strictjson.UnmarshalForeign(v, &tree) != nil {
		return
	}
	if text, ok := tree.(string); ok { // some give JSON as text
		var inner any
		if strictjson.UnmarshalForeign([]byte(text), &inner) == nil {
			tree = inner
		}
	}
	w := walker{text: b, paths: p}
	w.walk("", tree)
}

// A walker collects the strings of a JSON value.
type walker struct {
	text  *strings.Builder
	paths *paths
}

// notText are members of blocks that nobody looks for: types, IDs, pictures.
var notText = map[string]bool{"type": true, "id": true, "tool_use_id": true, "signature": true, "data": true, "media_type": true, "cache_control": true}

func (w *walker) walk(name string, v any) {
	switch v := v.(type) {
	case string:
		if w.paths != nil {
			if pathNames[name] {
				w.paths.add(v)
			}
			w.paths.patch(v)
		}
		w.text.WriteString(v)
		w.text.WriteByte('\n')
	case []any:
		for _, e := range v {
			w.walk(name, e)
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if w.paths != nil || !notText[k] {
				w.walk(k, v[k])
			}
		}
	}
}
