package conversation

import (
	"cmp"
	"strings"

	"github.com/lopen-dev/lopen/writer/plain"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// part is a part of a message's content, as the APIs of models have it.
type part struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Thinking string `json:"thinking"`

	// Of an error.
	Name string `json:"name"`
	Data struct {
		Message string `json:"message"`
	} `json:"data"`
}

func (p *part) said() string {
	said := cmp.Or(p.Text, p.Thinking)
	if said == "" && p.Data.Message != "" {
		return strings.TrimPrefix(p.Name+": "+p.Data.Message, ": ")
	}
	return said
}

// label says what a part is that says nothing.
func (p *part) label() string { return cmp.Or(p.Type, p.Name, "nothing readable") }

func (p *part) thought() bool {
	return p.Type == "thinking" || p.Type == "reasoning" || p.Type == "summary_text"
}

// text returns the texts of a content, one below the other. What has none stands as JSON.
func text(content strictjson.Value) string {
	if len(content) == 0 {
		return ""
	}
	var s string
	if content[0] == '"' && strictjson.UnmarshalLenient(content, &s) == nil {
		return s
	}
	var parts []part
	if content[0] != '[' || strictjson.UnmarshalLenient(content, &parts) != nil {
		return plain.AsWritten(content)
	}
	var all []string
	for _, p := range parts {
		all = append(all, cmp.Or(p.said(), p.label()))
	}
	return strings.Join(all, "\n")
}
