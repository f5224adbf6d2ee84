package agent

import (
	"cmp"
	"slices"
	"strings"
)

// How many of the arguments behind a flag are its values.
const (
	one  = '1' // the next one
	opt  = '?' // the next one, unless it begins with a dash
	many = '*' // all up to one that begins with a dash
)

// A typed is a command line as a person typed it, read as far as flags go.
type typed struct {
	flags []flag
	words []int // indexes of what is no flag and no value
	end   int   // the index of a --, or the length
}

type flag struct {
	name   string // --model; an alias is what it stands for
	values []string
}

// readFlags reads line from the index from on. values says of the flags that have values
// how many, and aliases gives short ones and other spellings their name.
func readFlags(line []string, from int, values map[string]rune, aliases map[string]string) typed {
	t := typed{end: len(line)}
	for i := from; i < len(line); i++ {
		arg := line[i]
		if arg == "--" {
			t.end = i
			for i++; i < len(line); i++ {
				t.words = append(t.words, i)
			}
			break
		}
		if len(arg) < 2 || arg[0] != '-' {
			t.words = append(t.words, i)
			continue
		}
		var f flag
		f, i = readFlag(line, i, values, aliases)
		t.flags = append(t.flags, f)
	}
	return t
}

// readFlag reads the flag at an index, and returns the index of its last value.
func readFlag(line []string, i int, values map[string]rune, aliases map[string]string) (flag, int) {
	arg := line[i]
	name, value, joined := strings.Cut(arg, "=")
	if arg[1] != '-' && len(arg) > 2 && values[cmp.Or(aliases[arg[:2]], arg[:2])] != 0 {
		name, value, joined = arg[:2], strings.TrimPrefix(arg[2:], "="), true
	}
	f := flag{name: cmp.Or(aliases[name], name)}
	switch n := values[f.name]; {
	case joined:
		f.values = []string{value}
	case n == one && i+1 < len(line):
		i++
		f.values = []string{line[i]}
	case n == opt || n == many:
		for i+1 < len(line) && !strings.HasPrefix(line[i+1], "-") && (n == many || f.values == nil) {
			i++
			f.values = append(f.values, line[i])
		}
	}
	return f, i
}

// has says whether one of the flags was typed.
func (t typed) has(names ...string) bool {
	return slices.ContainsFunc(t.flags, func(f flag) bool { return slices.Contains(names, f.name) })
}

// values are all values of a flag, in their order.
func (t typed) values(name string) (all []string) {
	for _, f := range t.flags {
		if f.name == name {
			all = append(all, f.values...)
		}
	}
	return all
}

// last is the value of a flag that counts when it was typed several times.
func (t typed) last(name string) string {
	all := t.values(name)
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1]
}

// quote quotes an argument for a shell, where that is needed.
func quote(s string) string {
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !plainRune(r) }) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// plainRune says that a rune means itself to every shell, and nothing to an agent's rules.
func plainRune(r rune) bool {
	return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || strings.ContainsRune("_./=:@%+-", r)
}
