package redact_test

import (
	"encoding/binary"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

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
	{"password", "hunter2", "DB_PASS=%"},
	{"password", "hunter2", "dbPass: '%'"},
	{"api-key", "12345678-1234-1234-1234-123456789012", "MAPS_API_KEY=%"},
	{"token", "12345678-1234-1234-1234-123456789012", "//registry.npmjs.org/:_authToken=%"},
	{"auth", "Ym9iOmh1bnRlcg==", "{\"auths\": {\"https://index.docker.io/v1/\": {\"auth\": \"%\"}}}"},
	{"auth", "Ym9iOmh1bnRlcg==", "//registry.npmjs.org/:_auth=%"},
	{"token", body(24), "set(\"API_TOKEN\", \"%\")"},
	{"token", body(24), "var apiToken string = \"%\""},
	{"token", body(24), "api_token: str = '%'"},
	{"token", body(24), "TOKEN ::= \"%\""},
	{"token", body(24), "TOKEN ?= %"},
	{"password", "hunter2", "<password>\n  %\n</password>"},
	{"password", "hunter2", "<add key=\"ClearTextPassword\" value=\"%\" />"},
	{"token", body(24), "- name: API_TOKEN\n  value: %"},
	{"password", "hunter2", "mysql --user root --password % db"},
	{"password", "hunter2", "run --password '%'"},
	{"token", body(24), "deploy --token % --force"},
	{"token", body(24), "deploy --auth-token=% --force"},
	{"password", "hunter", "curl -s -u bob:% https://x"},
	{"password", "correct horse", "curl --user 'bob:%' https://x"},
	{"password", "hunter2", "wget --user bob:% https://x"},
	{"password", "hunter2x", "curl -u %: -X GET"},
	{"password", "hunter2", "docker login -u bob -p % x.io"},
	{"password", "hunter2", "mysql -u root -p% db"},
	{"cookie", "a3fWa1b2Qx; Path=/; HttpOnly", "Set-Cookie: id=%"},
	{"cookie", "a3fWa1b2Qx; theme=dark", "> Cookie: lang=en; sid=%"},
	{"cookie", "a3fWa1b2Qx", "-H 'Cookie: sid=%'"},
	{"url-password", body(24), "https://%@github.com/x/y.git"},
	{"url-password", body(24) + ":x-oauth-basic", "https://%@github.com/x/y.git"},
	{"signature", body(40) + "%2B" + body(3) + "%3D", "https://x.blob.core.windows.net/c?sv=2022-11-02&sp=r&sig=@"},
	{"secret", body(43) + "=", "Endpoint=sb://x/;SharedAccessKeyName=k;SharedAccessKey=%"},
	{"atlassian-token", "ATATT3" + "xFfGF0" + body(60) + "=C6399E26", "%"},
	{"atlassian-token", "ATCTT3" + "xFfGF0" + body(60), "%"},
	{"linear-key", "lin_api_" + body(40), "%"},
	{"supabase-key", "sbp_" + hexBody(40), "%"},
	{"supabase-key", "sb_secret_" + body(31), "%"},
	{"1password-token", "ops_eyJ" + body(120), "%"},
	{"1password-key", "A3-" + "ASWWYB-798JRYLJVD4-23DC2-86TVM-H43EB", "%"},
	{"airtable-token", "pat" + body(14) + "." + hexBody(64), "%"},
	{"azure-secret", "abc8Q~" + body(33), "id %,"},
	{"terraform-token", body(14) + ".atlasv1." + body(64), "%"},
	{"maxmind-key", body(6) + "_" + body(29) + "_mmk", "%"},
	{"telegram-token", "123456789:AA" + body(33), "bot %"},
	{"jwt", "ZXlK" + body(60), "%"},
	{"notion-token", "ntn_" + "12345678901" + body(35), "%"},
	{"teams-webhook", ".webhook.office.com/webhookb2/" + hexBody(36) + "@" + hexBody(36) + "/IncomingWebhook/" + hexBody(32), "https://x%"},
	{"discord-webhook", "discord.com/api/webhooks/" + "123456789012345678/" + body(68), "https://%"},
	{"twilio-key", "SK" + hexBody(32), "%"},
	{"password", "hunter", "CREATE USER bob PASSWORD '%'"},
	{"password", "hunter", "create user bob identified by \"%\""},
	{"password", "hunter2x", "the password '%'"},
	{"password", "hunter", "sshpass -p % ssh x"},
	{"password", "hunter2x", "java -password % x"},
	{"password", "hunter2x", "redis-cli -a % ping"},
	{"password", "hunter2x", "ds.setPassword(\"%\")"},
	{"password", "hunter2x", "define( 'DB_PASSWORD', '%' )"},
	{"password", "hunter2x", "PASSWORD = N'%'"},
	{"password", "$6$a1b2c3d4$" + body(86), "root:%:19000"},
	{"url-password", "hunter", "bob:%@tcp(db:3306)/x"},
	{"url-password", "hunter", "jdbc:oracle:thin:bob/%@db:1521"},
	{"telegram-token", "123456789:AA" + body(33), "https://api.telegram.org/bot%/getMe"},
	{"fernet-key", body(43) + "=", "Fernet(b'%')"},
	{"fernet-token", "gAAAAABm" + body(112), "%"},
	{"secret", "LS0tLS1CRUdJTi" + body(80), "client-key-data: %"},
	{"secret", body(43), "{\"kty\":\"EC\",\"d\":\"%\"}"},
	{"private-key", "3kq1mX\n" + pemBody + "\nabc=\n-----END RSA PRIVATE KEY-----", "%\nx"},
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

// stays are texts without credentials.
var stays = []string{
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
	"[redacted:github-token]", "password=[redacted:password]", "password: [redacted:password] or1 a secret2 word3",
	"--password string   the password", "--token=$TOKEN", "mysql -p", "cp -p file1 file2", "mkdir -p a1/b2", "docker run -u 1000:1000 x", "docker run -u app:staff x",
	"curl -u 'test:test' x", "curl -u \"$USER:$PASS\" x", "curl --user user:pass x", "curl -u bob x",
	"cookie: chocolate", "Cookie: lang=en; theme=dark", "Set-Cookie: <cookie>", "SameSite=Lax",
	"https://user@host/x", "ssh://git@github.com:22/x", "postgres://localhost:5432/x?sslmode=disable",
	"\"auth\": \"required\"", "\"auth\": \"bmV2ZXI=\"", "auth: {type: basic}", "sig=abc", "bypass: a1b2c3d4e5f6",
	"<token>", "<key>a1b2</key>", "a > b", "name: x\n  value: a1b2c3d4e5f6g7", "f(\"token\", \"x\")",
	"at 12:34:56:A", "4b1d" + hexBody(60), "cache-key-" + hexBody(32), "patch." + hexBody(80), "background-image: url(data:image/png;base64,iVBORw0KGgo" + body(400) + ")",
	"a line `-----END RSA PRIVATE KEY-----` ends a key", pemBody + "\n-----END CERTIFICATE-----",
	"CREATE USER bob PASSWORD 'secret'", "PASSWORD EXPIRE", "identified by 'name1x'", "objects identified by +id+ or by 'k1'", "IDENTIFIED BY '<password>'", "wrong password 'required'",
	"sshpass -p $PASS ssh x", "sshpass -e ssh x", "ls -a hunter2x", "mkdir -p hunter2x", "redis-cli -p 6379x", "java -password string", "-token value",
	"password   string", "Password  *auth.Password2", "pass   *analysis.Pass1", "password varchar(20)", "password    VARCHAR2(20)", "token   oauth2", "proxy_pass   http://host1:80", "the password   hunter2x",
	"password   AuthenticationMD5Password", "NAME   AGE\nsecret1a2b3c4d5e   7d", "| password | string1 |", "| the password | x1y2z3w4 |", "DB_PASSWORD   ${PASS1}", "| a | b |\n|---|---|\n| password1 | x |",
	"a:5432:b:c", "('*:*:*:*:*:*:*:*')", "file.go:5432:10: x", "localhost:5432:db:bob:password", "2001:5432:53aa:64c:7d00:1", "12:34:56:7:8", "host:5432:db:user: with words",
	"password: |\n  a sentence of words\n", "token: |\nnext: a1b2c3d4e5f6g7\n", "description: |\n  a1b2c3d4e5f6g7\n", "password: >\n", "password: | a1b2c3",
	"password: &user.password1,\n", "password: !secret wifi_password2", "password: !Ref DbPassword1", "password: &pw |\nnext: x1y2z3w4", "\"a:5432:b:c:password\"", `{"text":"password: |\nother: x1y2z3w4"}`,
	"ALTER ROLE app PASSWORD $1", "PASSWORD\n  '<password>'", "SET PASSWORD FOR bob = 'password'", "SET PASSWORD FOR bob", "crypt('x1y2z3w4')", "password = crypt($1, gen_salt('bf'))", "password = scrypt('x1y2z3w4')",
	"INSERT INTO users (name, password) VALUES ('bob', $1)", "INSERT INTO users (name, password_hint) VALUES ('bob', 'x1y2z3w4')", "INSERT INTO users (name, password) SELECT a1, 'x1y2z3w4'", "INSERT INTO users (password, n) VALUES (?, 'x1y2z3w4')", "insert into the (password) slot x1y2z3w4",
	"name,password,role\n\nbob,x1y2z3w4,admin", "name, password, role\nbob, x1y2z3w4, admin", "f(name,password)\nbob,x1y2z3w4", "name,password\nbob,x1y2z3w4,admin", "a,b\nname,password\n", "name,password,role\nbob,string,sha256",
	"| `password` | `string1` |", "| `DB_PASSWORD` | `DB_PASSWORD_2` |", "| 1 | name | x1y2z3w4 |", "│ name │ token │\n├──────┼───────┤\n│ bob  │ string │", "│ a │ b │\n├───┼───┤\n│ x1y2z3w4 │ password1 │",
	"password=getUserFromCtx", "password=someCamelCaseNameOfThing", "password: XMLHttpRequest", "password=newDBConnStr", "password: MyPasswordIsSecret", "password: getDBPwdFromCtx", "the SSHPASS variable",
	"app.run('x1y2z3w4')", "client.login('bob', 'x')", "b'" + hexBody(44) + "'", "b'" + strings.Repeat("a", 43) + "='", "Authorization: Bot <token>", "https://discord.com/api/v10/gateway/bot", "https://x/with/key/name",
	`{"name":"API_TOKEN","value":"string"}`, `{"name":"DB_HOST","value":"x1y2z3w4"}`, `[{"Key":"API_TOKEN"},{"Value":"x1y2z3w4x5y6z7"}]`, "password = \"\"\"\n", "token = '''x'''",
	"echo \"root:$PASS1\" | chpasswd", "cat x1y2z3 | chpasswd", "[sudo] password for bob: ", "the password for x1: it is here", "Password for 'https://bob@h1': ", "Unseal Key 1: missing", "Unseal Key Nonce: abc", "AWS Secret Access Key [None]: ", "ls -pw x", "x -pw string",
	"requirepass foobared", "requirepass is 1 of them", "> AUTH LOGIN", "rootpw {SSHA}", "the bindpw option",
	"getPassword(\"hunter2x\")", "check_password(\"hunter2x\")", "[\"password\", \"hunter2x\"]", "f(\"password\", \"sha256\")", "password(\"utf8\")",
	"{\"d\":\"" + body(43) + "\"}", "Fernet(key1)", "gAAAAAB", "Private-Lines: 12", "Private-MAC: " + hexBody(64), "$2a$10$short", "{SSHA}x", "pass:$2a", "self.password = params['password1']", "--- PASS: TestVet/6 (0.07s)", "password: @user.password1", "password: Optional[str1]", "user:pass@tcpip", "thin:x/y",
	"h1:" + body(43) + "=", "\x1b[31mred\x1b[0m", "a\x00b\x00c\x00", "F\x00o\x00r\x00 \x00y\x00o\x00u\x00",
}

func TestStays(t *testing.T) {
	t.Parallel()
	r, err := redact.New(nil)
	require.NoError(t, err)
	for _, text := range stays {
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
		{"a cut key of PuTTY", pemBody + "\nabc=\nPrivate-MAC: " + hexBody(64) + "\nx", "[redacted:private-key]\nx", 1},
		{"a key of PuTTY that has no end", "Private-Lines: 1\n" + pemBody + "\nThen he left.", "[redacted:private-key]\nThen he left.", 1},
		{"quotes within", "PASSWORD 'it''s hunter2' x", "PASSWORD '[redacted:password]' x", 1},
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

// The end of a terminal's colour is a letter, and colours stand anywhere.
func TestColours(t *testing.T) {
	t.Parallel()
	r := &redact.Redactor{}
	for _, c := range []struct{ text, want string }{
		{"password=\x1b[32mhunter2\x1b[0m ok", "password=\x1b[32m[redacted:password]\x1b[0m ok"},
		{"\x1b[1;34mpassword\x1b[0m\x1b[90m: \x1b[0m\x1b[32m\"hunter2\"\x1b[0m", "\x1b[1;34mpassword\x1b[0m\x1b[90m: \x1b[0m\x1b[32m\"[redacted:password]\"\x1b[0m"},
		{"password=hun\x1b[1mter2", "password=[redacted:password]"},
		{"ghp_" + body(20) + "\x1b[7m" + body(16), "[redacted:github-token]"},
		{"\x1b[31msk-" + hexBody(32), "\x1b[31m[redacted:openai-key]"},
		{`{"text":"password=\u001b[32mhunter2\u001b[0m"}`, `{"text":"password=\u001b[32m[redacted:password]\u001b[0m"}`},
		{`password=\e[32mhunter2\e[0m`, `password=\e[32m[redacted:password]\e[0m`},
		{"password=\x1b(B\x1b[mhunter2", "password=\x1b(B\x1b[m[redacted:password]"},
		{"https://bob:\x1b[33mhunter\x1b[m@host", "https://bob:\x1b[33m[redacted:url-password]\x1b[m@host"},
	} {
		got, n := r.String(c.text)
		require.Equal(t, c.want, got)
		require.Equal(t, 1, n)
		again, n := r.String(got)
		require.Equal(t, got, again)
		require.Zero(t, n)
	}
}

// Windows tools write UTF-16, with and without a mark of the order.
func TestUTF16(t *testing.T) {
	t.Parallel()
	r := &redact.Redactor{}
	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		for _, bom := range []string{"", "\ufeff"} {
			for _, s := range secrets {
				var wide, secret []byte
				for _, c := range utf16.Encode([]rune(bom + "x " + fill(s.text, s.secret))) {
					wide = order.AppendUint16(wide, c)
				}
				for _, c := range utf16.Encode([]rune(s.secret)) {
					secret = order.AppendUint16(secret, c)
				}
				got, n := r.Bytes(wide)
				require.NotContains(t, string(got), string(secret))
				require.Contains(t, string(got), "[redacted:"+s.kind+"]")
				require.Equal(t, 1, n, s.text)
				again, n := r.Bytes(got)
				require.Equal(t, got, again)
				require.Zero(t, n)
				odd, _ := r.Bytes(wide[1:])
				require.NotContains(t, string(odd), string(secret[2:len(secret)-1]))
			}
		}
	}
}

// A marker that the text brings along, be it a real one or forged, saves nothing.
func TestMarkersSaveNothing(t *testing.T) {
	t.Parallel()
	r := &redact.Redactor{}
	for _, s := range secrets {
		for _, text := range []string{"[redacted:x]" + s.secret, s.secret + "[redacted:x]", "[redacted:x][redacted:y]" + s.secret + "[redacted:z]"} {
			whole := fill(s.text, text)
			if strings.Contains(s.secret, "%") {
				whole = strings.Replace(s.text, "@", text, 1)
			}
			if strings.Contains(s.secret, "\n") || s.kind == "maxmind-key" || s.kind == "terraform-token" || s.kind == "password" && strings.Contains(s.text, "curl") {
				continue // lines that a marker breaks
			}
			got, n := r.String(whole)
			require.NotContains(t, got, s.secret)
			require.Positive(t, n)
			again, n := r.String(got)
			require.Equal(t, got, again)
			require.Zero(t, n, got)
		}
	}
	got, n := r.String("password=hun[redacted:x]ter2")
	require.Equal(t, "password=[redacted:password]", got)
	require.Equal(t, 1, n)
}

// The project's own files have no credentials, and hashes, UUIDs and names enough.
func TestOwnFilesStay(t *testing.T) {
	t.Parallel()
	r := &redact.Redactor{}
	for _, path := range []string{"../../go.sum", "../../go.mod", "../../README.md", "../../DESIGN.md", "../../SECURITY.md", "../../docs/FORMATS.md", "../../docs/SESSIONS.md", "../../Makefile", "../../.golangci.yml", "../../bench/peers/go.sum"} {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		got, _ := r.String(string(text))
		require.Equal(t, string(text), got, path)
	}
}

// A stranger's project may bring patterns: they cost a bounded time and no memory.
func TestPatternsAreBounded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		patterns []string
		want     string
	}{
		{slices.Repeat([]string{"a"}, 65), "65 redact patterns, more than 64"},
		{[]string{strings.Repeat("a", 1001)}, "1001 bytes, more than 1000"},
		{[]string{`((\pL{10}){10}){10}`}, "repeat less"},
		{[]string{`(x{1000}y{1000}z{1000}){1}(a{999}|b{999})`}, "repeat less"},
		{slices.Repeat([]string{`[a-z]{100}`}, 41), "repeat less"},
	} {
		_, err := redact.New(c.patterns)
		require.ErrorContains(t, err, c.want)
	}
	_, err := redact.New(slices.Repeat([]string{`(?i)employee[ -]?(number|id)?\W{1,3}\w{4,12}`}, 20))
	require.NoError(t, err)
}

// Redactors with the same expressions have one fingerprint, and others have another.
func TestFingerprint(t *testing.T) {
	t.Parallel()
	of := func(patterns ...string) string {
		r, err := redact.New(patterns)
		require.NoError(t, err)
		return r.Fingerprint()
	}
	require.Equal(t, of("a", "b"), of("a", "b"))
	require.Equal(t, of(), new(redact.Redactor).Fingerprint())
	require.NotEqual(t, of(), of("a"))
	require.NotEqual(t, of(`a" "b`), of("a", "b"))
	require.NotEqual(t, of(), (*redact.Redactor)(nil).Fingerprint())
}
