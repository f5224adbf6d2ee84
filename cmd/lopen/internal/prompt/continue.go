package prompt

import (
	"bytes"
	_ "embed"
	"fmt"
	"strings"
	"text/template"
)

//go:embed continue.tmpl
var continueText string

var continueTemplate = template.Must(template.New("continue").Funcs(template.FuncMap{"indent": indent}).Parse(continueText))

// Continued is the prompt of an attempt that continues a session of the agent, which knows
// the task already.
type Continued struct {
	Task, TaskID string
	// Cut says how the last attempt was cut off: "were interrupted in the middle of it".
	Cut string
	// Failure and Check say why the last attempt failed, in place of Cut.
	Failure, Check string
	Judge          string // the command that judges the task; "" for none
}

// Write writes the prompt, with the end of what the check printed.
func (p Continued) Write() ([]byte, error) {
	p.Failure = strings.TrimSpace(p.Failure)
	p.Check, _ = tail(p.Check, tailInPrompt)
	var b bytes.Buffer
	if err := continueTemplate.Execute(&b, p); err != nil {
		return nil, fmt.Errorf("write prompt: %w", err)
	}
	return b.Bytes(), nil
}
