package main

import (
	"bytes"
	"fmt"
	"strings"
	"text/template"

	"github.com/itchyny/gojq"
	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/terminal"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// outputFlags choose how a command that reads prints.
type outputFlags struct {
	json     bool
	fields   string
	jq       string
	template string
}

// jsonFlags adds the flags that every command that reads has.
func (a *app) jsonFlags(cmd *cobra.Command) *cobra.Command {
	f := cmd.Flags()
	f.BoolVar(&a.out.json, "json", false, "print everything as compact JSON")
	f.StringVar(&a.out.fields, "fields", "", "print these fields only, as JSON: `a,b`")
	f.StringVar(&a.out.jq, "jq", "", "print what this jq `QUERY` makes of the JSON")
	f.StringVar(&a.out.template, "template", "", "print what this Go `TEMPLATE` makes of the JSON")
	return cmd
}

func (o outputFlags) machine() bool {
	return o.json || o.fields != "" || o.jq != "" || o.template != ""
}

// printJSON prints v as the flags say: v is what --json prints, an object or
// an array of objects.
func (a *app) printJSON(v any) error {
	data, err := strictjson.MarshalShown(v)
	if err != nil {
		return err
	}
	var tree any
	if a.out.fields != "" || a.out.jq != "" || a.out.template != "" {
		if err := strictjson.UnmarshalForeign(data, &tree); err != nil {
			return err
		}
	}
	if a.out.fields != "" {
		if tree, err = pick(tree, strings.Split(a.out.fields, ",")); err != nil {
			return err
		}
		if data, err = strictjson.MarshalShown(tree); err != nil {
			return err
		}
	}
	switch {
	case a.out.jq != "":
		return printJQ(a.stdout, a.out.jq, tree)
	case a.out.template != "":
		t, err := template.New("template").Parse(a.out.template)
		if err != nil {
			return usagef("--template: %w", err)
		}
		var b bytes.Buffer
		if err := t.Execute(&b, tree); err != nil {
			return usagef("--template: %w", err)
		}
		_, err = fmt.Fprintln(a.stdout.Content(), b.String())
		return err
	}
	_, err = fmt.Fprintf(a.stdout.JSON(), "%s\n", data)
	return err
}

// pick returns the named fields of an object, or of every object of an array.
func pick(tree any, fields []string) (any, error) {
	switch t := tree.(type) {
	case []any:
		for i := range t {
			var err error
			if t[i], err = pick(t[i], fields); err != nil {
				return nil, err
			}
		}
		return t, nil
	case map[string]any:
		picked := map[string]any{}
		for _, f := range fields {
			if v, ok := t[strings.TrimSpace(f)]; ok {
				picked[strings.TrimSpace(f)] = v
			}
		}
		return picked, nil
	}
	return nil, usagef("--fields: the output has no fields")
}

func printJQ(w *terminal.Stream, query string, tree any) error {
	q, err := gojq.Parse(query)
	if err != nil {
		return usagef("--jq: %w", err)
	}
	results := q.Run(tree)
	for {
		v, ok := results.Next()
		if !ok {
			return nil
		}
		if err, ok := v.(error); ok {
			return usagef("--jq: %w", err)
		}
		if s, ok := v.(string); ok { // as jq -r does: byte for byte into a pipe
			fmt.Fprintln(w.Content(), s)
			continue
		}
		data, err := strictjson.MarshalShown(v)
		if err != nil {
			return err
		}
		fmt.Fprintf(w.JSON(), "%s\n", data)
	}
}
