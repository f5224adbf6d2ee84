package main

import (
	"regexp"
	"strings"
)

// An outcome is what became of a mutant. Only caught is a success.
type outcome string

const (
	caught    outcome = "caught"
	survived  outcome = "SURVIVED"
	timedOut  outcome = "TIMED OUT"  // a test that hangs says nothing about the mechanism
	noBuild   outcome = "NO BUILD"   // the mutant does not compile, or cannot be made
	noControl outcome = "NO CONTROL" // the test does not pass without it
	noVerdict outcome = "NO VERDICT" // the test did not run, or the binary ended before it said anything
)

var (
	verdicts = regexp.MustCompile(`(?m)^\s*--- (PASS|FAIL|SKIP): (\S+)`)
	hung     = regexp.MustCompile(`(?m)^panic: test timed out after `)
)

// results are the verdicts that a test binary printed, by test.
func results(output string) map[string]string {
	all := map[string]string{}
	for _, m := range verdicts.FindAllStringSubmatch(output, -1) {
		all[m[2]] = m[1]
	}
	return all
}

// judge says what became of a mutant from the output of its test and the error of the binary.
func judge(test, output string, err error) outcome {
	is := results(output)[test]
	switch {
	case hung.MatchString(output):
		return timedOut
	case err != nil && is == "FAIL":
		return caught
	case err == nil && is == "PASS":
		return survived
	}
	return noVerdict
}

// tail is the end of an output, for messages.
func tail(output string) string {
	const most = 12
	lines := strings.Split(strings.TrimSpace(output), "\n")
	return strings.Join(lines[max(0, len(lines)-most):], "\n") + "\n"
}
