package main

import (
	"math"
	"math/rand/v2"
	"strings"

	"github.com/lopen-dev/lopen/bench/workload"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// texts are messages whose words are as frequent as those of a language: the n-th word is n times as
// rare as the first.
type texts struct {
	rng   *rand.Rand
	words []string
}

func newTexts() *texts {
	t := &texts{rng: rand.New(rand.NewPCG(workload.Seed, 20))}
	for range 60_000 {
		b := make([]byte, 2+t.rng.IntN(9))
		for i := range b {
			b[i] = byte('a' + t.rng.IntN(26))
		}
		t.words = append(t.words, string(b))
	}
	return t
}

func (t *texts) text(size int) string {
	var b strings.Builder
	for b.Len() < size {
		b.WriteString(t.words[int(math.Exp(t.rng.Float64()*math.Log(float64(len(t.words)))))-1])
		b.WriteByte(" .\n "[t.rng.IntN(4)])
	}
	return b.String()
}

// message is the i-th of a conversation: a question, a call of a tool, its answer, an answer.
func (t *texts) message(i int) session.Message {
	switch i % 4 {
	case 0:
		return session.Message{Role: session.RoleUser, Content: session.Text(t.text(50 + t.rng.IntN(300)))}
	case 1:
		return session.Message{Role: session.RoleAssistant, Content: session.Text(t.text(50 + t.rng.IntN(200))),
			ToolCalls: []session.ToolCall{{ID: "call", Name: "Read", Arguments: strictjson.Value(`{"file_path":"src/` + t.words[t.rng.IntN(1000)] + `.go"}`)}}}
	case 2:
		return session.Message{Role: session.RoleTool, ToolCallID: "call", Content: session.Text(t.text(200 + t.rng.IntN(2000)))}
	}
	return session.Message{Role: session.RoleAssistant, Content: session.Text(t.text(100 + t.rng.IntN(600)))}
}

// A query is words that are looked for, and how frequent they are.
type query struct {
	what  string
	words []string
}

func (t *texts) queries() []query {
	return []query{
		{"a word in nearly all messages", []string{t.words[0]}},
		{"a word in every tenth", []string{t.words[60]}},
		{"a word in one of 5,000", []string{t.words[30_000]}},
		{"three frequent words", []string{t.words[3], t.words[5], t.words[40]}},
		{"two words, never together", []string{t.words[59_000], t.words[59_001]}},
		{"the beginning of a word", []string{t.words[100][:3] + "*"}},
		{"two frequent words as a phrase", []string{`"` + t.words[3] + " " + t.words[5] + `"`}},
		{"a word in nearly all, none young enough", []string{"--since", "2100-01-01", t.words[0]}},
		{"the first letter of a word", []string{"w*"}},
		{"a file", []string{"--file", "src/" + t.words[60] + ".go"}},
	}
}

// plain is what grep looks for in its place.
func (q query) plain() string {
	return strings.Trim(q.words[len(q.words)-1], `"*`)
}
