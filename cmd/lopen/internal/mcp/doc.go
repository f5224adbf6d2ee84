// Package mcp serves tools over the Model Context Protocol on stdin and stdout, so that an agent
// can ask what is stored. It knows the protocol and what the tools are called with; a [Source]
// reads the project. All tools only read, and say so.
//
// What a client sends is not trusted. A message has at most 1 MiB. One that is longer, or no message, is
// answered with an error, and the next one is read. While 16 requests wait for their answers, no
// further message is read. A text of an answer has at most [MaxText] bytes and says what was left out.
//
// # Concurrency
//
// [Serve] has a goroutine that reads, and the SDK has one for each request. The tools run one at
// a time. After Serve returned, only the goroutine that reads may still be there: where a read of
// stdin cannot be interrupted, it ends with the process.
package mcp
