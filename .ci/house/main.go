package main

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
)

func main() {
	h, err := read(".")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("%-34s %6s %6s %6s %6s %8s\n", "room", "files", "lines", "median", "tests", "exported")
	lines, tests := 0, 0
	for _, dir := range slices.Sorted(maps.Keys(h)) {
		r := h[dir]
		fmt.Printf("%-34s %6d %6d %6d %6d %8d\n", dir, len(r.files), r.lines(), r.median(), r.tests, len(r.exported))
		lines, tests = lines+r.lines(), tests+r.tests
	}
	fmt.Printf("%-34s %6s %6d %6s %6d\n", "all", "", lines, "", tests)
	fmt.Println("\nlongest files")
	var all []file
	for _, r := range h {
		all = append(all, r.files...)
	}
	slices.SortFunc(all, func(a, b file) int { return cmp.Or(b.lines-a.lines, cmp.Compare(a.name, b.name)) })
	for _, f := range all[:min(len(all), 10)] {
		fmt.Printf("%6d  %s\n", f.lines, f.name)
	}
	fmt.Println("\nexported, and used by no other package's source and no Example")
	for _, dir := range slices.Sorted(maps.Keys(h)) {
		for _, name := range h.unused(dir) {
			fmt.Printf("  %s.%s\n", dir, name)
		}
	}
}
