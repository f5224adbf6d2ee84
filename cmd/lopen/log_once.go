package main

import (
	"slices"

	"github.com/rs/zerolog"
)

// toldTwice are the log's warnings and errors whose event the command tells in its own words:
// on a terminal they would stand there twice. A log that was asked for, by a level or a
// file, has them all.
var toldTwice = []string{
	"paused on a storage error",
	"damaged session moved aside",
	"orphan found",
	"orphan left alone: it is no command of a run any more",
	"the session's lock was lost and is taken again; nobody had gone on with the session",
	"the disk is nearly full",
	"session closed",
	"the checkpoints that may not be removed take more than the limit",
}

// once leaves out what the command tells itself.
type once struct{}

func (once) Run(e *zerolog.Event, _ zerolog.Level, message string) {
	if slices.Contains(toldTwice, message) {
		e.Discard()
	}
}
