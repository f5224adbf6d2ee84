package main

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// takesDashedWords marks a command whose arguments may begin with a dash.
const takesDashedWords = "dashed words"

// dashedWords returns the arguments of the program with those of a command that takes dashed words sorted: flags first,
// and behind -- the words that begin with a dash, which would be flags that nobody knows. Words may change places with
// each other in a query.
func dashedWords(root *cobra.Command, args []string) []string {
	cmd, rest, err := root.Find(args)
	if err != nil || cmd.Annotations[takesDashedWords] == "" {
		return args
	}
	at := 0 // of the command's name, which rest does not have
	for at < len(rest) && rest[at] == args[at] {
		at++
	}
	_ = cmd.InheritedFlags() // which adds them to Flags
	var dashed []string
	sorted := slices.Clone(args[:at+1])
	for left := args[at+1:]; len(left) > 0; left = left[1:] {
		arg := left[0]
		switch {
		case arg == "--":
			return append(append(append(sorted, "--"), dashed...), left[1:]...)
		case isDashedWord(arg):
			dashed = append(dashed, arg)
		default:
			sorted = append(sorted, arg)
			if takesNext(cmd.Flags(), arg) && len(left) > 1 {
				sorted, left = append(sorted, left[1]), left[1:]
			}
		}
	}
	if len(dashed) > 0 {
		sorted = append(append(sorted, "--"), dashed...)
	}
	return sorted
}

// isDashedWord says whether an argument is a word that begins with one dash: any but -h, -C and -C with a path.
func isDashedWord(arg string) bool {
	if len(arg) < 2 || arg[0] != '-' || arg[1] == '-' || arg == "-h" || arg == "-C" {
		return false
	}
	path, dir := strings.CutPrefix(arg, "-C")
	if !dir {
		return true
	}
	r, _ := utf8.DecodeRuneInString(path)
	return !strings.ContainsRune("=/.~", r)
}

// takesNext says whether an argument is a flag whose value is the next argument.
func takesNext(flags *pflag.FlagSet, arg string) bool {
	if arg == "-C" {
		return true
	}
	name, ok := strings.CutPrefix(arg, "--")
	if !ok || strings.Contains(name, "=") {
		return false
	}
	f := flags.Lookup(name)
	return f != nil && f.NoOptDefVal == ""
}
