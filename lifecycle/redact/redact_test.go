package redact_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/redact"
)

// body is made at run time, so that no scanner takes this file for a leak.
func body(n int) string {
	const s = "aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xY"
	return strings.Repeat(s, n/len(s)+1)[:n]
}

func hexBody(n int) string { return strings.Repeat("3fa94c07be51d268", n/16+1)[:n] }

const pemBody = "MIIEpAIBAAKCAQEA7bq8Y3kq1mXx0W9vQ2uT5sR8pLkJhGfDsAzXcVbNmQwErTyU"

var akia = "AKIA" + "IOSFODNN7EXAMPLE"

var awsSecret = "wJalrXUtnFEMI/K7MDENG" + "/bPxRfiCYEXAMPLEKEY"

// secrets by kind: the secret itself, and the text that it is found in (%).
var secrets = []struct{ kind, secret, text string }{
	{"aws-access-key", akia, "%"},
	{"aws-access-key", "ASIA" + "QWERTYUIOPASDFGH", "key=%"},
	{"aws-access-key", "AKIA" + "I44QH8DHBEXAMPLE", "x%"},
	{"aws-secret-key", awsSecret, "aws_secret_access_key = %"},
	{"aws-secret-key", awsSecret, `"SecretAccessKey": "%"`},
	{"github-token", "ghp_" + body(36), "%"},
	{"github-token", "gho_" + body(36), `\n%`},
	{"github-token", "ghu_" + body(36), "(%)"},
	{"github-token", "ghs_" + body(36), "a%"},
	{"github-token", "ghr_" + body(36), "%."},
	{"github-token", "github_pat_" + body(22) + "_" + body(59), "%"},
	{"gitlab-token", "glpat-" + body(20), "see %."},
	{"gitlab-token", "glpat-" + body(27) + ".01." + body(9), "%"},
	{"gitlab-token", "gldt-" + body(20), "%"},
	{"gitlab-token", "glrt-" + body(20), "%"},
	{"gitlab-token", "glptt-" + hexBody(40), "%"},
	{"gitlab-token", "glcbt-" + body(24), "%"},
	{"gitlab-token", "glft-" + body(20), "%"},
	{"gitlab-token", "glsoat-" + body(20), "%"},
	{"gitlab-token", "glimt-" + body(25), "%"},
	{"gitlab-token", "glagent-" + body(50), "%"},
	{"gitlab-token", "gloas-" + hexBody(64), "%"},
	{"slack-token", "xoxb-" + "123456789012-1234567890123-" + body(24), "%"},
	{"slack-token", "xoxp-" + "123456789012-" + body(24), "%"},
	{"slack-token", "xoxa-" + "2-" + body(24), "%"},
	{"slack-token", "xoxr-" + body(24), "%"},
	{"slack-token", "xoxs-" + body(24), "%"},
	{"slack-token", "xoxc-" + body(24), "%"},
	{"slack-token", "xoxe-" + "1-" + body(60), "%"},
	{"slack-token", "xoxd-" + body(20) + "%2B" + body(8) + "%3D", "d=@"},
	{"slack-token", "xapp-" + "1-A0B1-" + body(30), "%"},
	{"slack-webhook", "hooks.slack.com/services/" + "T0000AAAA/B0000BBBB/" + body(24), "https://%"},
	{"stripe-key", "sk_live_" + body(24), "%"},
	{"stripe-key", "sk_test_" + body(24), "%"},
	{"stripe-key", "rk_live_" + body(24), "%"},
	{"stripe-key", "rk_test_" + body(24), "%"},
	{"stripe-key", "whsec_" + body(32), "%"},
	{"google-api-key", "AIza" + body(35), "?key=%"},
	{"google-oauth", "GOCSPX-" + body(28), "%"},
	{"google-oauth", "ya29." + body(60), "%"},
	{"anthropic-key", "sk-ant-" + "api03-" + body(93) + "-AA", "%"},
	{"openai-key", "sk-proj-" + body(60), "%"},
	{"openai-key", "sk-svcacct-" + body(60), "%"},
	{"openai-key", "sk-admin-" + body(60), "%"},
	{"openai-key", "sk-" + body(48), "%"},
	{"openai-key", "sk-" + hexBody(32), `\n%`},
	{"openrouter-key", "sk-or-v1-" + hexBody(64), "%"},
	{"npm-token", "npm_" + body(36), "//registry.npmjs.org/:_authToken=%"},
	{"pypi-token", "pypi-AgE" + "IcHlwaS5vcmc" + body(70), "%"},
	{"huggingface-token", "hf_" + body(34), "%"},
	{"huggingface-token", "api_org_" + body(34), "%"},
	{"groq-key", "gsk_" + body(52), "%"},
	{"xai-key", "xai-" + body(80), "%"},
	{"docker-token", "dckr_pat_" + body(27), "%"},
	{"digitalocean-token", "dop_v1_" + hexBody(64), "%"},
	{"digitalocean-token", "doo_v1_" + hexBody(64), "%"},
	{"digitalocean-token", "dor_v1_" + hexBody(64), "%"},
	{"shopify-token", "shpat_" + hexBody(32), "%"},
	{"shopify-token", "shpss_" + hexBody(32), "%"},
	{"shopify-token", "shpca_" + hexBody(32), "%"},
	{"databricks-token", "dapi" + hexBody(32), "%"},
	{"vault-token", "hvs." + body(90), "%"},
	{"grafana-token", "glsa_" + body(32) + "_" + hexBody(8), "%"},
	{"age-key", "AGE-SECRET-KEY-1" + strings.ToUpper(body(58)), "%"},
	{"sendgrid-key", "SG." + body(22) + "." + body(43), "%"},
	{"jwt", "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0." + body(43), "%"},
	{"jwt", "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0", "cut off %"},
	{"jwt", "eyJhbGciOiJSU0EifQ." + body(40) + "." + body(16) + "." + body(40) + "." + body(22), "%"},
	{"private-key", "-----BEGIN RSA PRIVATE KEY-----\n" + pemBody + "\n" + pemBody + "\nabc=\n-----END RSA PRIVATE KEY-----", "%\n"},
	{"private-key", "-----BEGIN OPENSSH PRIVATE KEY-----\n" + pemBody + "\n" + pemBody[:7], "%"},
	{"private-key", "-----BEGIN PRIVATE KEY-----\\n" + pemBody + "\\n" + pemBody, `k: "%\n`},
	{"private-key", "-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,AB\n\n" + pemBody, "%"},
	{"private-key", "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n12:01 x " + pemBody + "\n=abcd\n-----END PGP PRIVATE KEY BLOCK-----", "%"},
	{"authorization", body(24), "Authorization: Bearer %"},
	{"authorization", "dXNlcjpwYXNz", "-H 'authorization: Basic %'"},
	{"authorization", body(24), `{"Authorization":"token %"}`},
	{"authorization", body(24), `Proxy-Authorization=%`},
	{"authorization", body(24), "sent bearer % to it"},
	{"url-password", "hunter", "postgres://bob:%@db/x"},
	{"url-password", "p@ss:w", "https://bob:%@host/"},
	{"url-password", "hunter", `https:\/\/bob:%@host\/`},
	{"url-password", "hunter", "redis://:%@host:6379"},
	{"password", "hunter2", "password=%"},
	{"password", "correct!horse", "DB_PASSWORD: %"},
	{"password", "hunter2.x", `mysql_pwd = "%"`},
	{"password", "hunter2", `{\"passphrase\": \"%\"}`},
	{"password", "hunter2", "PASSWORD1='%"},
	{"password", "$2a$10$" + body(53), "password: %"},
	{"secret", hexBody(32), "client_secret: %"},
	{"secret", body(24), `secret := "%"`},
	{"secret", body(64) + "==", "AccountKey=%;x"},
	{"api-key", "3f2504e0-4f89-11d3-9a0c-0305e82c3301", "X-Api-Key: %"},
	{"api-key", body(20), `apiKey => '%'`},
	{"token", body(20), "ACCESS_TOKEN=%&a=b"},
	{"token", "xyABCdefQRStuvWXYz", "token=%"},
}

// fill puts the secret in the place that % marks, or @ when the secret holds %.
func fill(text, secret string) string {
	if strings.Contains(secret, "%") {
		return strings.Replace(text, "@", secret, 1)
	}
	return strings.Replace(text, "%", secret, 1)
}

func TestKinds(t *testing.T) {
	t.Parallel()
	r, err := redact.New(nil)
	require.NoError(t, err)
	for _, c := range secrets {
		text := fill(c.text, c.secret)
		got, n := r.String(text)
		want := fill(c.text, c.secret)
		want = strings.Replace(want, c.secret, "[redacted:"+c.kind+"]", 1)
		require.Equal(t, want, got)
		require.Equal(t, 1, n, text)
	}
}

func TestStays(t *testing.T) {
	t.Parallel()
	r, err := redact.New(nil)
	require.NoError(t, err)
	for _, text := range []string{
		"",
		"commit 2f6d919a7bb0c1d2e3f405162738495a6b7c8d9e fixes it",
		"sha256:" + hexBody(64),
		"id 3f2504e0-4f89-11d3-9a0c-0305e82c3301",
		"cache_key: " + hexBody(40),
		"password_hash_algorithm: argon2id",
		"password: required", "password=secret", "password: ${DB_PASSWORD1!}", "password = <your-password1>",
		"password = cfg.Password", "password := getPassword()", "password: ********", "password: %s",
		"the secret: it's 3 words", "secret_name: my-secret-01", "secret: my-secret-name-01",
		"max_tokens=4096", "token: string", "token = ctx.req.token2", "token = os.Getenv(", "next token: tokenizerV2Impl",
		"token: someCamelCaseNameOfThing",
		"api_key: YOUR_API_KEY_HERE", "api_key: $API_KEY1a2b3c",
		"Authorization: Bearer $TOKEN", "Authorization: Bearer tokens are", "Authorization: required", "authorization: Bearer <token>",
		"the bearer authenticationmiddleware", "Bearer " + strings.Repeat("a", 40),
		"https://example.org:8080/a@b", "https://user@host/", "https://u:${PASS}@host/", "https://u:***@host", "mailto:a@b.c",
		"AKIA" + "IOSFODNN7", "ASIAPACIFICREGIONALOFFICE", "xASIA" + "QWERTYUIOPASDFGH",
		"ghp_short", "github_pat_" + body(12), "glpat-example", "xoxb-your-bot-token-here", "xoxb-12",
		"task_test_initialisationofall", "task_test_InitialisationOfAllThings", "sk_live_short1",
		"pk_live_" + body(24), "AIza" + body(20), "GOCSPX-short", "pypi-AgEabc", "ya29.short",
		"disk-" + hexBody(40), "sk-learn", "task-" + strings.Repeat("abcd", 10), "sk-ant-your-key-here-please", "sk-ant-api03-xxx",
		"npm_config_registry_is_a_very_long_name_of_an_option", "npm_" + strings.Repeat("a", 40), "half_" + body(10),
		"dapi" + hexBody(31), "dop_v1_" + hexBody(40), "hvs.short", "SG." + body(22) + ".x", "SG." + body(12) + "." + body(43),
		"eyJhbGciOiJIUzI1NiJ9", "eyJhbGciOiJIUzI1NiJ9.method", "eyJhbGciOiJIUzI1NiJ9.methodName_of", "eyJ.eyJ",
		"-----BEGIN CERTIFICATE-----\n" + pemBody + "\n-----END CERTIFICATE-----",
		"-----BEGIN PUBLIC KEY-----\n" + pemBody + "\n-----END PUBLIC KEY-----",
		"a line `-----BEGIN RSA PRIVATE KEY-----` begins a key",
		"[redacted:github-token]", "password=[redacted:password]",
	} {
		got, n := r.String(text)
		require.Equal(t, text, got)
		require.Zero(t, n)
	}
}

func TestAround(t *testing.T) {
	t.Parallel()
	r, err := redact.New(nil)
	require.NoError(t, err)
	key := "ghp_" + body(36)
	for _, c := range []struct {
		name, text, want string
		n                int
	}{
		{"the token's own kind wins over the name's", "password=" + key, "password=[redacted:github-token]", 1},
		{"two", key + " and " + akia, "[redacted:github-token] and [redacted:aws-access-key]", 2},
		{"glued", "npm_" + body(36) + "npm_" + body(36), "[redacted:npm-token]", 1},
		{"a cut block ends with the key", "-----BEGIN PRIVATE KEY-----\n" + pemBody + "\nThen he left the room.", "[redacted:private-key]\nThen he left the room.", 1},
		{"a cut block does not reach the next", "-----BEGIN PRIVATE KEY-----\n" + pemBody + "\nand so on\n-----BEGIN PRIVATE KEY-----\n" + pemBody + "\n-----END PRIVATE KEY-----\nx",
			"[redacted:private-key]\nand so on\n[redacted:private-key]\nx", 2},
		{"no marker", "[redacted:see " + key, "[redacted:see [redacted:github-token]", 1},
		{"a kind too long is no marker", "[redacted:" + strings.Repeat("a", 25) + "]" + key, "[redacted:" + strings.Repeat("a", 25) + "][redacted:github-token]", 1},
		{"no newline in quotes", "password=\"hunter2\n x\"", "password=\"[redacted:password]\n x\"", 1},
	} {
		got, n := r.String(c.text)
		require.Equal(t, c.want, got, c.name)
		require.Equal(t, c.n, n, c.name)
	}
}

func TestExtra(t *testing.T) {
	t.Parallel()
	_, err := redact.New([]string{"ok", "a(b"})
	require.ErrorContains(t, err, `compile redact pattern "a(b": `)

	r, err := redact.New([]string{`CORP-\d+`, `(?i)employee \w+`, `x*`})
	require.NoError(t, err)
	got, n := r.String("CORP-12 and EMPLOYEE bob, xx. employee ghp_" + body(36))
	require.Equal(t, "[redacted:custom] and [redacted:custom], [redacted:custom]. [redacted:github-token]", got)
	require.Equal(t, 4, n)

	// A pattern that could match what redaction left behind does not.
	for _, p := range []string{`^.`, `.$`, `\b\w`, `red`, `(?s).+`, `a[^b]*c`} {
		r, err := redact.New([]string{p})
		require.NoError(t, err)
		once, _ := r.String("a xx abc foo red c d")
		twice, n := r.String(once)
		require.Equal(t, once, twice, p)
		require.Zero(t, n, p)
	}
}

func TestNil(t *testing.T) {
	t.Parallel()
	var r *redact.Redactor
	text := "ghp_" + body(36)
	s, n := r.String(text)
	require.Equal(t, text, s)
	require.Zero(t, n)
	b, n := r.Bytes([]byte(text))
	require.Equal(t, text, string(b))
	require.Zero(t, n)
	b, n, err := r.JSON([]byte(`"` + text + ``))
	require.NoError(t, err)
	require.Equal(t, `"`+text, string(b))
	require.Zero(t, n)
}
