package redact

import "strings"

// token is a key that its vendor gave one of some prefixes, separated by spaces: a prefix,
// then at least min bytes of body. The body runs on as long as its class does, so that a
// longer key of tomorrow is hidden to its end. sure, when set, looks at the first sureBytes
// of the body and rules out words.
type token struct {
	kind, prefixes string
	body           *class
	min            int
	sure           func(b []byte, start, body, end int) bool
}

// sureBytes bounds what sure looks at, and so what a refusal costs.
const sureBytes = 256

// tokens is written down from the vendors' documentation of their formats. The
// lengths are minimums and a little below what is issued today.
var tokens = []token{
	{"aws-access-key", "AKIA ASIA ABIA ACCA", upperNum, 16, awsShape},
	{"github-token", "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_", word, 30, nil},
	{"gitlab-token", "glpat- gldt- glrt- glptt- glcbt- glft- glsoat- glimt- glagent- gloas- glffct-", dotted, 20, nil},
	{"slack-token", "xoxb- xoxp- xoxa- xoxr- xoxs- xoxc- xoxe-", dash, 10, hasDigit},
	{"slack-token", "xapp-", dash, 10, digitFirst},
	{"slack-token", "xoxd-", cookie, 10, hasDigit},
	{"slack-webhook", "hooks.slack.com/services/ hooks.slack.com/workflows/ hooks.slack.com/triggers/", base64, 20, nil},
	{"stripe-key", "sk_live_ sk_test_ rk_live_ rk_test_ sk_prod_ rk_prod_", alnum, 16, looksIssued},
	{"stripe-key", "whsec_", base64, 24, looksIssued},
	{"google-api-key", "AIza", dash, 35, nil},
	{"google-oauth", "GOCSPX-", dash, 28, nil},
	{"google-oauth", "ya29.", dotted, 20, looksIssued},
	{"anthropic-key", "sk-ant-", dash, 20, looksIssued},
	{"openai-key", "sk-proj- sk-svcacct- sk-admin-", dash, 20, looksIssued},
	{"openai-key", "sk-", alnum, 32, skShape},
	{"openrouter-key", "sk-or-v1-", alnum, 32, looksIssued},
	{"npm-token", "npm_", alnum, 36, looksIssued},
	{"pypi-token", "pypi-AgE", dash, 40, nil},
	{"huggingface-token", "hf_ api_org_", alnum, 30, looksIssued},
	{"groq-key", "gsk_", alnum, 40, looksIssued},
	{"xai-key", "xai-", alnum, 40, looksIssued},
	{"docker-token", "dckr_pat_ dckr_oat_", dash, 20, looksIssued},
	{"digitalocean-token", "dop_v1_ doo_v1_ dor_v1_", hex, 60, nil},
	{"shopify-token", "shpat_ shpss_ shpca_ shppa_", hex, 32, nil},
	{"databricks-token", "dapi", hex, 32, nil},
	{"vault-token", "hvs.", dash, 24, looksIssued},
	{"grafana-token", "glsa_", word, 32, looksIssued},
	{"age-key", "AGE-SECRET-KEY-1", upperNum, 50, nil},
	{"1password-token", "ops_eyJ", base64, 100, nil},
	{"1password-key", "A3-", capital, 31, dashedKey},
	{"adobe-secret", "p8e-", alnum, 32, looksIssued},
	{"airtable-token", "pat", dotted, 79, airtableShape},
	{"alibaba-key", "LTAI", alnum, 20, wholeWord},
	{"artifactory-key", "AKCp", alnum, 60, wholeWord},
	{"artifactory-key", "cmVmd", alnum, 55, wholeWord},
	{"atlassian-token", "ATATT3 ATCTT3", bearer, 50, looksIssued},
	{"atlassian-token", "ATBB", alnum, 28, looksIssued},
	{"bedrock-key", "ABSK", base64, 80, wholeWord},
	{"bedrock-key", "bedrock-api-key-", base64, 20, looksIssued},
	{"buildkite-token", "bkua_", hex, 40, nil},
	{"circleci-token", "CCIPAT_", word, 40, looksIssued},
	{"clickhouse-key", "4b1d", alnum, 38, threeCases},
	{"clojars-token", "CLOJARS_", alnum, 50, looksIssued},
	{"cloudflare-key", "v1.0-", hexDash, 100, nil},
	{"contentful-token", "CFPAT-", dash, 40, looksIssued},
	{"defined-token", "dnkey-", dash, 60, looksIssued},
	{"discord-webhook", "discord.com/api/webhooks/ discordapp.com/api/webhooks/ discord.com/api/v6/webhooks/ discordapp.com/api/v6/webhooks/ discord.com/api/v7/webhooks/ discordapp.com/api/v7/webhooks/ discord.com/api/v8/webhooks/ discordapp.com/api/v8/webhooks/ discord.com/api/v9/webhooks/ discordapp.com/api/v9/webhooks/ discord.com/api/v10/webhooks/ discordapp.com/api/v10/webhooks/", base64, 60, looksIssued},
	{"doppler-token", "dp.pt. dp.ct. dp.sa.", alnum, 40, looksIssued},
	{"doppler-token", "dp.st.", dotted, 40, looksIssued},
	{"duffel-token", "duffel_test_ duffel_live_", bearer, 40, looksIssued},
	{"dynatrace-token", "dt0c01. dt0s16.", dotted, 60, looksIssued},
	{"e2b-key", "e2b_", hex, 40, nil},
	{"easypost-key", "EZAK EZTK", alnum, 50, wholeWord},
	{"facebook-token", "EAAM EAAC", alnum, 80, wholeWord},
	{"figma-token", "figd_", dash, 36, looksIssued},
	{"flutterwave-key", "FLWSECK_TEST- FLWPUBK_TEST-", dash, 12, looksIssued},
	{"flutterwave-key", "FLWSECK-", dash, 30, looksIssued},
	{"fly-token", "fo1_", dash, 40, looksIssued},
	{"fly-token", "fm1a_ fm1r_ fm2_", base64, 80, looksIssued},
	{"frameio-token", "fio-u-", bearer, 60, looksIssued},
	{"gitlab-token", "GR1348941", dash, 20, looksIssued},
	{"grafana-token", "eyJrIjoi", base64, 60, looksIssued},
	{"grafana-token", "glc_", base64, 32, looksIssued},
	{"harness-token", "pat. sat.", dotted, 68, harnessShape},
	{"heroku-key", "HRKU-", dash, 36, looksIssued},
	{"ifttt-key", "/with/key/", dash, 20, looksIssued},
	{"infracost-key", "ico-", alnum, 32, issuedWord},
	{"intra42-secret", "s-s4t2ud- s-s4t2af-", hex, 60, nil},
	{"jwt", "ZXlK", base64, 40, wholeWord},
	{"langfuse-key", "sk-lf-", hexDash, 36, nil},
	{"langsmith-key", "lsv2_pt_ lsv2_sk_", word, 32, looksIssued},
	{"linear-key", "lin_api_ lin_oauth_", alnum, 30, looksIssued},
	{"newrelic-key", "NRAK-", alnum, 27, looksIssued},
	{"newrelic-key", "NRII-", dash, 32, looksIssued},
	{"newrelic-key", "NRJS-", hex, 19, nil},
	{"notion-token", "ntn_", alnum, 40, looksIssued},
	{"notion-token", "secret_", alnum, 43, threeCases},
	{"nvidia-key", "nvapi-", dash, 50, looksIssued},
	{"octopus-key", "API-", upperNum, 26, octopusShape},
	{"openshift-token", "sha256~", dash, 43, looksIssued},
	{"perplexity-key", "pplx-", alnum, 40, looksIssued},
	{"pinecone-key", "pcsk_", word, 40, looksIssued},
	{"plaid-token", "access-sandbox- access-development- access-production-", hexDash, 36, nil},
	{"planetscale-token", "pscale_tkn_ pscale_oauth_ pscale_pw_", dotted, 32, looksIssued},
	{"postman-key", "PMAK-", dash, 50, looksIssued},
	{"prefect-key", "pnu_", alnum, 36, looksIssued},
	{"pulumi-token", "pul-", hex, 40, issuedWord},
	{"readme-key", "rdme_", alnum, 60, looksIssued},
	{"replicate-token", "r8_", alnum, 37, looksIssued},
	{"rubygems-key", "rubygems_", hex, 48, nil},
	{"scalingo-token", "tk-us-", dash, 48, looksIssued},
	{"sendinblue-key", "xkeysib- xsmtpsib-", dash, 70, looksIssued},
	{"sentry-token", "sntrys_", base64, 60, looksIssued},
	{"sentry-token", "sntryu_", hex, 60, nil},
	{"settlemint-token", "sm_aat_ sm_pat_ sm_sat_", alnum, 16, looksIssued},
	{"shippo-token", "shippo_live_ shippo_test_", hex, 40, nil},
	{"slack-token", "xoxo-", dash, 20, hasDigit},
	{"slack-token", "xoxe.xox", dash, 40, hasDigit},
	{"sourcegraph-token", "sgp_", word, 40, looksIssued},
	{"square-token", "sq0atp- sq0csp-", dash, 22, looksIssued},
	{"square-token", "EAAA", dash, 50, wholeWord},
	{"supabase-key", "sbp_", hex, 40, nil},
	{"supabase-key", "sb_secret_", dash, 20, looksIssued},
	{"tailscale-key", "tskey-", dash, 20, looksIssued},
	{"teams-webhook", ".webhook.office.com/webhookb2/", teams, 60, nil},
	{"twilio-key", "SK", hex, 32, issuedWord},
	{"typeform-token", "tfp_", dotted, 50, looksIssued},
	{"vault-token", "hvb.", dotted, 100, looksIssued},
	{"vault-token", "hvr.", dotted, 24, looksIssued},
	{"yandex-key", "AQVN", dash, 35, wholeWord},

	{"fernet-token", "gAAAAA", base64, 90, wholeWord},
	{"private-key", "RWRTY0Iy", base64, 150, nil},
	{"password", "$2a$ $2b$ $2y$", crypt, 55, hasDigit},
	{"password", "$5$ $6$ $y$ $gy$", crypt, 43, looksIssued},
	{"password", "$1$ $apr1$", crypt, 26, looksIssued},
	{"password", "$argon2id$ $argon2i$ $argon2d$", crypt, 50, looksIssued},
	{"password", "{SSHA} {SHA} {SSHA256} {SSHA512} {SMD5}", base64, 28, looksIssued},
}

func tokenRules() (rules []rule) {
	for i := range tokens {
		for prefix := range strings.FieldsSeq(tokens[i].prefixes) {
			rules = append(rules, rule{trigger: prefix, match: func(b []byte, at int) (span, int) { return tokens[i].match(b, at, len(prefix)) }})
		}
	}
	return rules
}

func (t *token) match(b []byte, i, prefix int) (span, int) {
	body := i + prefix
	head := run(b, body, t.body, max(sureBytes, t.min))
	if head-body < t.min || t.sure != nil && !t.sure(b, i, body, head) {
		return span{}, i + 1
	}
	end := run(b, head, t.body, -1)
	next := end - prefix + 1
	for b[end-1] == '.' {
		end-- // the full stop of a sentence
	}
	return span{start: i, end: end, rank: rankToken, kind: t.kind}, next
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

func digitFirst(b []byte, _, body, _ int) bool { return isDigit(b[body]) }

func cases(b []byte) (upper, lower, digit bool) {
	for _, c := range b {
		upper = upper || isUpper(c)
		lower = lower || isLower(c)
		digit = digit || isDigit(c)
	}
	return upper, lower, digit
}

// threeCases wants a body with capitals, small letters and digits at a word's start,
// where the prefix alone may be part of a hash or a name.
func threeCases(b []byte, start, body, end int) bool {
	u, l, d := cases(b[body:end])
	return u && l && d && wordStart(b, start)
}

// issuedWord is looksIssued at a word's start, for prefixes of which there are many.
func issuedWord(b []byte, start, body, end int) bool {
	return wordStart(b, start) && looksIssued(b, start, body, end)
}

// wholeWord wants that no base64 stands before the prefix, which any may contain.
func wholeWord(b []byte, start, body, end int) bool {
	return (start == 0 || !base64[b[start-1]] || b[start-1] == '=') && looksIssued(b, start, body, end)
}

// dashedKey is A3-XXXXXX-, then groups of five or more.
func dashedKey(b []byte, start, body, end int) bool {
	return b[body+6] == '-' && wordStart(b, start) && hasDigit(b, start, body, end)
}

// airtableShape is pat, 14 bytes, a dot, hexadecimal.
func airtableShape(b []byte, start, body, _ int) bool {
	const id = 14
	return b[body+id] == '.' && wordStart(b, start) && run(b, body+id+1, hex, 64)-body-id-1 == 64
}

// harnessShape is 22 bytes, a dot, 24, a dot, 20.
func harnessShape(b []byte, start, body, end int) bool {
	return b[body+22] == '.' && b[body+47] == '.' && looksIssued(b, start, body, end)
}

// octopusShape is exactly 26 bytes at a word's start.
func octopusShape(b []byte, start, body, end int) bool {
	return end-body == 26 && issuedWord(b, start, body, end)
}
