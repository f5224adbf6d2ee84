package agent

import (
	"strconv"

	"github.com/lopen-dev/lopen/writer/strictjson"
)

// decode reads an event. A member of another type than the one that is known is skipped,
// and the others count.
func decode(event strictjson.Value, v any) bool {
	return strictjson.UnmarshalLenient(event, v) == nil
}

// details are the members of a tool's input that say what it is about, the first of which
// counts.
var details = []string{"command", "cmd", "file_path", "filePath", "notebook_path", "path", "pattern", "query", "url", "skill", "description", "prompt", "name"}

// detail says what a tool call is about: a command, or a file.
func detail(input map[string]strictjson.Value) string {
	for _, name := range details {
		var text string
		if strictjson.UnmarshalForeign(input[name], &text) == nil && text != "" {
			return text
		}
		var words []string // a command as its arguments
		if strictjson.UnmarshalForeign(input[name], &words) == nil && len(words) > 0 {
			text = quote(words[0])
			for _, w := range words[1:min(len(words), 100)] {
				text += " " + quote(w)
			}
			return text
		}
	}
	return ""
}

func number(n float64) string { return strconv.FormatInt(count(n), 10) }
