package redact

// token is a key that its vendor gave a prefix: prefix, then at least min bytes
// of body. The body runs on as long as its class does, so that a longer key of
// tomorrow is hidden to its end. sure, when set, looks at the first sureBytes of
// the body and rules out words.
type token struct {
	kind, prefix string
	body         *class
	min          int
	sure         func(b []byte, start, body, end int) bool
}

// sureBytes bounds what sure looks at, and so what a refusal costs.
const sureBytes = 256

// tokens is written down from the vendors' documentation of their formats. The
// lengths are minimums and a little below what is issued today.
var tokens = []token{
	{"aws-access-key", "AKIA", upperNum, 16, awsShape},
	{"aws-access-key", "ASIA", upperNum, 16, awsShape},
	{"aws-access-key", "ABIA", upperNum, 16, awsShape},
	{"aws-access-key", "ACCA", upperNum, 16, awsShape},
	{"github-token", "ghp_", word, 30, nil},
	{"github-token", "gho_", word, 30, nil},
	{"github-token", "ghu_", word, 30, nil},
	{"github-token", "ghs_", word, 30, nil},
	{"github-token", "ghr_", word, 30, nil},
	{"github-token", "github_pat_", word, 30, nil},
	{"gitlab-token", "glpat-", dotted, 20, nil},
	{"gitlab-token", "gldt-", dotted, 20, nil},
	{"gitlab-token", "glrt-", dotted, 20, nil},
	{"gitlab-token", "glptt-", dotted, 20, nil},
	{"gitlab-token", "glcbt-", dotted, 20, nil},
	{"gitlab-token", "glft-", dotted, 20, nil},
	{"gitlab-token", "glsoat-", dotted, 20, nil},
	{"gitlab-token", "glimt-", dotted, 20, nil},
	{"gitlab-token", "glagent-", dotted, 20, nil},
	{"gitlab-token", "gloas-", dotted, 20, nil},
	{"slack-token", "xoxb-", dash, 10, hasDigit},
	{"slack-token", "xoxp-", dash, 10, hasDigit},
	{"slack-token", "xoxa-", dash, 10, hasDigit},
	{"slack-token", "xoxr-", dash, 10, hasDigit},
	{"slack-token", "xoxs-", dash, 10, hasDigit},
	{"slack-token", "xoxc-", dash, 10, hasDigit},
	{"slack-token", "xoxe-", dash, 10, hasDigit},
	{"slack-token", "xoxd-", cookie, 10, hasDigit},
	{"slack-token", "xapp-", dash, 10, hasDigit},
	{"slack-webhook", "hooks.slack.com/services/", base64, 20, nil},
	{"stripe-key", "sk_live_", alnum, 16, looksIssued},
	{"stripe-key", "sk_test_", alnum, 16, looksIssued},
	{"stripe-key", "rk_live_", alnum, 16, looksIssued},
	{"stripe-key", "rk_test_", alnum, 16, looksIssued},
	{"stripe-key", "whsec_", base64, 24, looksIssued},
	{"google-api-key", "AIza", dash, 35, nil},
	{"google-oauth", "GOCSPX-", dash, 28, nil},
	{"google-oauth", "ya29.", dotted, 20, looksIssued},
	{"anthropic-key", "sk-ant-", dash, 20, looksIssued},
	{"openai-key", "sk-proj-", dash, 20, looksIssued},
	{"openai-key", "sk-svcacct-", dash, 20, looksIssued},
	{"openai-key", "sk-admin-", dash, 20, looksIssued},
	{"openai-key", "sk-", alnum, 32, skShape},
	{"openrouter-key", "sk-or-v1-", alnum, 32, looksIssued},
	{"npm-token", "npm_", alnum, 36, looksIssued},
	{"pypi-token", "pypi-AgE", dash, 40, nil},
	{"huggingface-token", "hf_", alnum, 30, looksIssued},
	{"huggingface-token", "api_org_", alnum, 30, looksIssued},
	{"groq-key", "gsk_", alnum, 40, looksIssued},
	{"xai-key", "xai-", alnum, 40, looksIssued},
	{"docker-token", "dckr_pat_", dash, 20, looksIssued},
	{"digitalocean-token", "dop_v1_", hex, 60, nil},
	{"digitalocean-token", "doo_v1_", hex, 60, nil},
	{"digitalocean-token", "dor_v1_", hex, 60, nil},
	{"shopify-token", "shpat_", hex, 32, nil},
	{"shopify-token", "shpss_", hex, 32, nil},
	{"shopify-token", "shpca_", hex, 32, nil},
	{"databricks-token", "dapi", hex, 32, nil},
	{"vault-token", "hvs.", dash, 24, looksIssued},
	{"grafana-token", "glsa_", word, 32, looksIssued},
	{"age-key", "AGE-SECRET-KEY-1", upperNum, 50, nil},
}

func tokenRules() []rule {
	rules := make([]rule, len(tokens))
	for i, t := range tokens {
		rules[i] = rule{t.prefix, t.match}
	}
	return rules
}

func (t token) match(b []byte, i int) (span, int) {
	body := i + len(t.prefix)
	head := run(b, body, t.body, max(sureBytes, t.min))
	if head-body < t.min || t.sure != nil && !t.sure(b, i, body, head) {
		return span{}, i + 1
	}
	end := run(b, head, t.body, -1)
	next := end - len(t.prefix) + 1
	for b[end-1] == '.' {
		end-- // the full stop of a sentence
	}
	return span{ctx: i, start: i, end: end, rank: rankToken, kind: t.kind}, next
}

// awsShape wants a digit, which one key in thirty lacks; without one it takes
// the exact length at a word's start. ASIAPACIFICREGIONALOFFICE stays.
func awsShape(b []byte, start, body, end int) bool {
	return hasDigit(b, start, body, end) || end-body == 16 && wordStart(b, start)
}

// skShape is the plain "sk-" of several vendors, which also ends "task-" and
// "disk-": mixed case with digits anywhere, hexadecimal only at a word's start.
func skShape(b []byte, start, body, end int) bool {
	u, l, d := cases(b[body:end])
	return d && (u && l || wordStart(b, start))
}

// looksIssued tells a random body from a word: digits among letters, or mixed
// case right at a word's start.
func looksIssued(b []byte, start, body, end int) bool {
	u, l, d := cases(b[body:end])
	return d && (u || l) || u && l && wordStart(b, start)
}

func hasDigit(b []byte, _, body, end int) bool {
	_, _, d := cases(b[body:end])
	return d
}

func cases(b []byte) (upper, lower, digit bool) {
	for _, c := range b {
		upper = upper || isUpper(c)
		lower = lower || isLower(c)
		digit = digit || isDigit(c)
	}
	return upper, lower, digit
}
