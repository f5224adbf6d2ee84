package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// unanswered is how long what is typed does not answer a question that was drawn.
const unanswered = 200 * time.Millisecond

// A paste is more than a terminal holds: the rest comes when there is room.
const (
	pasteGap  = 50 * time.Millisecond // without a line, and a paste is over
	pasteTime = 10 * time.Second      // the longest paste that a question waits for
)

// yesOrNo is the mark of a question that Enter alone does not agree to.
const yesOrNo = "[y/N] "

// agreed asks a question that only a yes answers.
func (a *app) agreed(ctx context.Context, question string) (bool, error) {
	answer, err := a.ask(ctx, question+" ", yesOrNo)
	return err == nil && isYes(answer), err
}

// agreedOrEnter asks a question that a yes answers, or Enter alone: nothing is lost by it.
func (a *app) agreedOrEnter(ctx context.Context, question string) (bool, error) {
	answer, err := a.ask(ctx, question+" ", "[Y/n] ")
	return err == nil && (answer == "" || isYes(answer)), err
}

func isYes(answer string) bool {
	return strings.EqualFold(answer, "y") || strings.EqualFold(answer, "yes")
}

// ask draws a question, and a mark when it can be answered, and reads a line. All questions are asked here: what
// was typed before, by whom a terminal was handed on or for another question, does not answer one, nor does
// what is typed before a person could have read it.
func (a *app) ask(ctx context.Context, question, mark string) (string, error) {
	return a.askAfter(ctx, question, mark, func() <-chan time.Time { return time.After(unanswered) })
}

// askAfter is ask with what tells when the question can have been read. It gives up when ctx ends, and leaves its
// reader behind then: the process is about to end.
func (a *app) askAfter(ctx context.Context, question, mark string, read func() <-chan time.Time) (string, error) {
	if !a.interactive() {
		return "", errors.New("there is no terminal to ask on")
	}
	fmt.Fprint(a.stderr, question)
	select {
	case <-read():
	case <-ctx.Done():
		fmt.Fprintln(a.stderr)
		return "", ctx.Err()
	}
	if err := a.dropLines(ctx); err != nil {
		fmt.Fprintln(a.stderr)
		return "", err
	}
	a.lines = bufio.NewReader(a.stdin) // the one before may hold a line
	fmt.Fprint(a.stderr, mark)
	type reply struct {
		line string
		err  error
	}
	got := make(chan reply, 1)
	go func() {
		line, err := a.lines.ReadString('\n')
		got <- reply{line, err}
	}()
	select {
	case r := <-got:
		return strings.TrimSpace(r.line), r.err
	case <-ctx.Done():
		fmt.Fprintln(a.stderr)
		return "", ctx.Err()
	}
}

// dropLines drops what was typed, with the rest of a paste.
func (a *app) dropLines(ctx context.Context) error {
	over := time.After(pasteTime)
	for dropTyped(a.stdin) {
		select {
		case <-time.After(pasteGap):
		case <-over:
			return errors.New("what is typed does not end, so that nothing of it is an answer")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
