package main

import (
	"bufio"
	"errors"
	"fmt"
	"iter"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/conversation"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/plain"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// showMessages prints the conversation of a session, up to the message last or all of it for "", as
// Markdown or JSON. It holds one message at a time, unless the JSON is worked on further.
func (a *app) showMessages(store *lifecycle.Store, id session.ID, last string, full bool) error {
	messages := store.Messages(id)
	if last != "" {
		messages = store.MessagesUpTo(id, last)
	}
	if a.out.machine() {
		return a.printMessages(id, messages)
	}
	title := id.String()
	if m, err := store.Meta(id); err == nil && m.Name != "" {
		title += ": " + plain.Markdown(m.Name)
	}
	out := bufio.NewWriter(a.stdout)
	fmt.Fprintf(out, "# %s\n\n", title)
	w := conversation.New(out, full)
	for m, err := range messages {
		if errors.Is(err, lifecycle.ErrNotFound) {
			return err
		}
		if err != nil {
			err = w.Gap(err)
		} else {
			err = w.Message(&m)
		}
		if err != nil {
			return err
		}
	}
	return out.Flush()
}

// printMessages prints an array of the messages.
func (a *app) printMessages(id session.ID, messages iter.Seq2[session.Message, error]) error {
	all := []session.Message{}
	stream := a.out.json && a.out.fields == "" && a.out.jq == "" && a.out.template == ""
	out, before := bufio.NewWriter(a.stdout.JSON()), "["
	for m, err := range messages {
		if errors.Is(err, lifecycle.ErrNotFound) {
			return err
		}
		if err != nil {
			fmt.Fprintf(a.stderr, "warning: session %s: %s\n", id, plain.Line(err.Error()))
			continue
		}
		if !stream {
			all = append(all, m)
			continue
		}
		data, err := strictjson.MarshalShown(&m)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(out, "%s%s", before, data); err != nil {
			return err
		}
		before = ",\n"
	}
	if !stream {
		return a.printJSON(all)
	}
	if before == "[" {
		fmt.Fprint(out, before)
	}
	fmt.Fprintln(out, "]")
	return out.Flush()
}
