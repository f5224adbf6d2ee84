// Search measures `lopen search` beside grep -r and ripgrep, on a store that it makes: so many messages
// of the length and with the words that conversations with agents have. It is for benchmarks.
//
//	go run ./bench/search -lopen bin/lopen -messages 1000000
//
// It prints a table in Markdown. Each figure is the median of five processes; the sides work in turns.
package main
