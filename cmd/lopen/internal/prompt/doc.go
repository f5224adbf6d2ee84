// Package prompt writes what an agent is asked: the prompt of an attempt at a task.
//
// A [Source] is made once a run. For each attempt its Draft collects the tasks, what the
// plan says around them, the sections of the specification that belong to them, research
// documents, and how the last attempts failed; a template writes them. Each part has a
// bound, and the whole stays below 96 KiB. Texts of documents and of output are quoted
// between lines that the text cannot end.
//
// [Drifted] says later which of these sections have changed since.
//
// # Concurrency
//
// A Source and a Draft belong to one goroutine.
package prompt
