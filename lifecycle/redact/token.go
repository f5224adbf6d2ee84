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
	{"1password-token", "ops_eyJ", base64, 100, nil},
	{"1password-key", "A3-", capital, 31, dashedKey},
	{"adobe-secret", "p8e-", alnum, 32, looksIssued},
	{"airtable-token", "pat", dotted, 79, airtableShape},
	{"alibaba-key", "LTAI", alnum, 20, wholeWord},
	{"artifactory-key", "AKCp", alnum, 60, wholeWord},
	{"artifactory-key", "cmVmd", alnum, 55, wholeWord},
	{"atlassian-token", "ATATT3", bearer, 50, looksIssued},
	{"atlassian-token", "ATCTT3", bearer, 50, looksIssued},
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
	{"discord-webhook", "discord.com/api/webhooks/", base64, 60, looksIssued},
	{"discord-webhook", "discordapp.com/api/webhooks/", base64, 60, looksIssued},
	{"docker-token", "dckr_oat_", dash, 20, looksIssued},
	{"doppler-token", "dp.pt.", alnum, 40, looksIssued},
	{"doppler-token", "dp.st.", dotted, 40, looksIssued},
	{"doppler-token", "dp.ct.", alnum, 40, looksIssued},
	{"doppler-token", "dp.sa.", alnum, 40, looksIssued},
	{"duffel-token", "duffel_test_", bearer, 40, looksIssued},
	{"duffel-token", "duffel_live_", bearer, 40, looksIssued},
	{"dynatrace-token", "dt0c01.", dotted, 60, looksIssued},
	{"dynatrace-token", "dt0s16.", dotted, 60, looksIssued},
	{"e2b-key", "e2b_", hex, 40, nil},
	{"easypost-key", "EZAK", alnum, 50, wholeWord},
	{"easypost-key", "EZTK", alnum, 50, wholeWord},
	{"facebook-token", "EAAM", alnum, 80, wholeWord},
	{"facebook-token", "EAAC", alnum, 80, wholeWord},
	{"figma-token", "figd_", dash, 36, looksIssued},
	{"flutterwave-key", "FLWSECK_TEST-", dash, 12, looksIssued},
	{"flutterwave-key", "FLWPUBK_TEST-", dash, 12, looksIssued},
	{"flutterwave-key", "FLWSECK-", dash, 30, looksIssued},
	{"fly-token", "fo1_", dash, 40, looksIssued},
	{"fly-token", "fm1a_", base64, 80, looksIssued},
	{"fly-token", "fm1r_", base64, 80, looksIssued},
	{"fly-token", "fm2_", base64, 80, looksIssued},
	{"frameio-token", "fio-u-", bearer, 60, looksIssued},
	{"gitlab-token", "glffct-", dotted, 20, nil},
	{"gitlab-token", "GR1348941", dash, 20, looksIssued},
	{"grafana-token", "eyJrIjoi", base64, 60, looksIssued},
	{"grafana-token", "glc_", base64, 32, looksIssued},
	{"harness-token", "pat.", dotted, 68, harnessShape},
	{"harness-token", "sat.", dotted, 68, harnessShape},
	{"heroku-key", "HRKU-", dash, 36, looksIssued},
	{"infracost-key", "ico-", alnum, 32, issuedWord},
	{"intra42-secret", "s-s4t2ud-", hex, 60, nil},
	{"intra42-secret", "s-s4t2af-", hex, 60, nil},
	{"jwt", "ZXlK", base64, 40, wholeWord},
	{"langfuse-key", "sk-lf-", hexDash, 36, nil},
	{"langsmith-key", "lsv2_pt_", word, 32, looksIssued},
	{"langsmith-key", "lsv2_sk_", word, 32, looksIssued},
	{"linear-key", "lin_api_", alnum, 30, looksIssued},
	{"linear-key", "lin_oauth_", alnum, 30, looksIssued},
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
	{"plaid-token", "access-sandbox-", hexDash, 36, nil},
	{"plaid-token", "access-development-", hexDash, 36, nil},
	{"plaid-token", "access-production-", hexDash, 36, nil},
	{"planetscale-token", "pscale_tkn_", dotted, 32, looksIssued},
	{"planetscale-token", "pscale_oauth_", dotted, 32, looksIssued},
	{"planetscale-token", "pscale_pw_", dotted, 32, looksIssued},
	{"postman-key", "PMAK-", dash, 50, looksIssued},
	{"prefect-key", "pnu_", alnum, 36, looksIssued},
	{"pulumi-token", "pul-", hex, 40, issuedWord},
	{"readme-key", "rdme_", alnum, 60, looksIssued},
	{"replicate-token", "r8_", alnum, 37, looksIssued},
	{"rubygems-key", "rubygems_", hex, 48, nil},
	{"scalingo-token", "tk-us-", dash, 48, looksIssued},
	{"sendinblue-key", "xkeysib-", dash, 70, looksIssued},
	{"sendinblue-key", "xsmtpsib-", dash, 70, looksIssued},
	{"sentry-token", "sntrys_", base64, 60, looksIssued},
	{"sentry-token", "sntryu_", hex, 60, nil},
	{"settlemint-token", "sm_aat_", alnum, 16, looksIssued},
	{"settlemint-token", "sm_pat_", alnum, 16, looksIssued},
	{"settlemint-token", "sm_sat_", alnum, 16, looksIssued},
	{"shippo-token", "shippo_live_", hex, 40, nil},
	{"shippo-token", "shippo_test_", hex, 40, nil},
	{"shopify-token", "shppa_", hex, 32, nil},
	{"slack-token", "xoxo-", dash, 20, hasDigit},
	{"slack-token", "xoxe.xox", dash, 40, hasDigit},
	{"slack-webhook", "hooks.slack.com/workflows/", base64, 20, nil},
	{"slack-webhook", "hooks.slack.com/triggers/", base64, 20, nil},
	{"sourcegraph-token", "sgp_", word, 40, looksIssued},
	{"square-token", "sq0atp-", dash, 22, looksIssued},
	{"square-token", "sq0csp-", dash, 22, looksIssued},
	{"square-token", "EAAA", dash, 50, wholeWord},
	{"stripe-key", "sk_prod_", alnum, 16, looksIssued},
	{"stripe-key", "rk_prod_", alnum, 16, looksIssued},
	{"supabase-key", "sbp_", hex, 40, nil},
	{"supabase-key", "sb_secret_", dash, 20, looksIssued},
	{"tailscale-key", "tskey-", dash, 20, looksIssued},
	{"teams-webhook", ".webhook.office.com/webhookb2/", teams, 60, nil},
	{"twilio-key", "SK", hex, 32, issuedWord},
	{"typeform-token", "tfp_", dotted, 50, looksIssued},
	{"vault-token", "hvb.", dotted, 100, looksIssued},
	{"vault-token", "hvr.", dotted, 24, looksIssued},
	{"yandex-key", "AQVN", dash, 35, wholeWord},
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
