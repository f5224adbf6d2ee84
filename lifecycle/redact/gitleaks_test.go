package redact_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/redact"
)

var update = flag.Bool("update", false, "write testdata/gitleaks.txt anew")

// missed says why samples of a rule stay as they are, by the rule's ID.
var missed = map[string]string{
	"asana-client-id":           "an identifier of digits only",
	"cloudflare-api-key":        "the vendor is the whole name",
	"cloudflare-global-api-key": "the vendor is the whole name",
	"curl-auth-header":          "one has 11 bytes, fewer than 12 are too many words",
	"curl-auth-user":            "one stands in braces, like a template",
	"discord-client-id":         "an identifier of digits only",
	"discord-client-secret":     "the sample has digits only, which identifiers have too",
	"facebook-access-token":     "digits, a bar and a word, without a name",
	"generic-api-key":           "names that only contain secret or auth",
	"hashicorp-tf-password":     "a plain word",
	"heroku-api-key":            "a UUID behind a name that ends in key alone",
	"hubspot-api-key":           "a UUID behind a name that ends in key alone",
	"jfrog-identity-token":      "the vendor is the whole name",
	"kubernetes-secret-yaml":    "base64 behind any name; that it is secret is said lines away",
	"mailchimp-api-key":         "a name that ends in key alone",
	"messagebird-client-id":     "an identifier",
	"nuget-config-password":     "a plain word",
	"pkcs12-file":               "a file's name and no text",
	"sidekiq-secret":            "two plain words",
	"snyk-api-token":            "a UUID behind a name that ends in key alone",
	"sonar-api-token":           "a name that ends in login",
	"sourcegraph-access-token":  "40 hexadecimal digits are a commit, too",
	"sumologic-access-id":       "an identifier that looks like a word",
}

// sample is one that gitleaks holds its own rules against; testdata/gitleaks.md says
// where it comes from. One without secrets is what its rule must not find.
type sample struct {
	Rule    string   `json:"rule"`
	Text    string   `json:"text"`
	Secrets []string `json:"secrets"`
}

func gitleaks(t *testing.T) (all []sample) {
	f, err := os.Open("testdata/gitleaks.jsonl.gz")
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var s sample
		require.NoError(t, json.Unmarshal(lines.Bytes(), &s))
		all = append(all, s)
	}
	require.NoError(t, lines.Err())
	return all
}

// survives reports whether one of the secrets can still be read in what became of the text.
func survives(got string, secrets []string) bool {
	return slices.ContainsFunc(secrets, func(s string) bool { return strings.Contains(got, s) })
}

// The table in testdata says of each rule of gitleaks how many of its own samples are
// hidden, and why the others are not. It is written anew with -update.
func TestGitleaks(t *testing.T) {
	t.Parallel()
	r := &redact.Redactor{}
	type row struct{ hidden, samples, kept, clean int }
	rows := map[string]*row{}
	for _, s := range gitleaks(t) {
		c := rows[s.Rule]
		if c == nil {
			c = &row{}
			rows[s.Rule] = c
		}
		got, n := r.String(s.Text)
		again, _ := r.String(got)
		require.Equal(t, got, again, s.Text)
		switch {
		case len(s.Secrets) == 0:
			if c.clean++; n == 0 {
				c.kept++
			} else if testing.Verbose() {
				t.Logf("FP %s: %q\n -> %q", s.Rule, s.Text, got)
			}
		default:
			if c.samples++; !survives(got, s.Secrets) {
				c.hidden++
			} else if testing.Verbose() {
				t.Logf("MISS %s: %q\n -> %q", s.Rule, s.Text, got)
			}
		}
	}
	var table bytes.Buffer
	whole, part := 0, 0
	for _, id := range slices.Sorted(func(yield func(string) bool) {
		for id := range rows {
			if !yield(id) {
				return
			}
		}
	}) {
		c, verdict := rows[id], "hidden"
		switch {
		case c.hidden == c.samples:
			whole++
		case c.hidden > 0:
			part++
			verdict = "in part: " + missed[id]
		default:
			verdict = "missed: " + missed[id]
		}
		if c.hidden < c.samples {
			require.NotEmpty(t, missed[id], "say why samples of %s stay", id)
		}
		fmt.Fprintf(&table, "%-40s %3d/%-3d  kept %d/%d  %s\n", id, c.hidden, c.samples, c.kept, c.clean, verdict)
	}
	fmt.Fprintf(&table, "\nof %d rules with samples %d are hidden whole, %d in part\n", len(rows), whole, part)
	const path = "testdata/gitleaks.txt"
	if *update {
		require.NoError(t, os.WriteFile(path, table.Bytes(), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), table.String())
}
