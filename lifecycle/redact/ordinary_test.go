package redact_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/redact"
)

// reports are lines that tools print of a test or a file, whose name stands at §. Those of the second list are about
// something that is called like a secret.
var (
	reports = []string{
		"PASS: §", "FAIL: §", "XPASS: §", "XFAIL: §", "SKIP: §", "PASS: § (12 of 34)", "PASS: § (test for excess errors)", "PASS: § 1 - init",
		"PASS §", "PASS  §", " PASS  § (5.123 s)", "  PASS  §", "PASS   : §()", "FAIL   : §()", "PASS\t§", "| PASS | § |", "12:01:02 PASS: §", "    PASS: §",
		"--- PASS: § (0.00s)", "    --- PASS: §/sub1 (0.01s)", "=== RUN   §", "ok  \t§\t0.012s", "not ok 12 - §", "§: OK", "§ ... ok", "§ PASSED   [ 12%]",
		"[ RUN      ] §", "[       OK ] § (12 ms)", "ok 1 - pass: 12 of § done", " 1/12 Test  #1: § ..........   Passed    0.01 sec",
		"PWD=/home/bob/§", "OLDPWD=/builds/group7/§", "declare -x PWD=\"/tmp/tmp.Xk29sLq3aB/§\"", "PWD=/__w/repo1/§", "PWD=C:\\Users\\Bob1\\§", "PWD=~/§", `"PWD": "/src/§",`,
		"-rw-r--r-- 1 bob bob 1234 Nov 28 18:52 §", "test auth::token::§ ... ok", "tests/test_password.py::§ PASSED", "test crate::password::§ ... ok", "refs/heads/password -> §",
		"make[1]: Entering directory '/src/§'", "  CC      crypto/password/§", " create mode 100644 §", " § | 12 ++++++------", "checking for §... no",
	}
	names = []string{
		"tests/t0001-basic.sh", "tests/misc/sha256sum.pl", "tests/rm/fail-2eperm.xpl", "tests/tail-2/inotify-rotate.sh", "test-utf8-ucs4", "test-base64", "gcc.dg/20020304-1.c",
		"gcc.c-torture/compile/20000105-1.c", "g++.dg/cpp2a/concepts1.C", "gdb.base/a2-run.exp", "t0001-basic.t", "TestTokenRefresh123", "TestAES256/GCM_SHA384", "src/utils/base64Url2.test.ts",
		"src/app/App2.spec.js", "com.example.Base64Test", "org.x.TokenV2Test", "test_sha256_v2", "LLVM::CodeGen/X86/avx512-cvt.ll", "token_v1_2_3", "Tests\\Unit\\Example2Test", "tst_QString2", "x86_64/password1.o",
	}
	about = []string{
		"§   Opaque   2   5d4h", "§   kubernetes.io/service-account-token   3   5d1h", "§   1/1   Running   0   4m12s", "§-8   \t 123456\t      9876.5 ns/op\t 12 B/op\t 1 allocs/op", "§   0.123456s",
		"x.go:12:\t§\t\t93.3%", "pkg/x.go:12:3: §\t100.0%", "| § | 85.71 | 3.456ms |", "| § | 12.5% | 1.5s |", "checking for §... no", "checking for § in -lx... /usr/lib/x1", "ac_cv_func_§=yes", "ac_cv_lib_x_§=no",
		"\"§\": \"^1.2.3\",", "\"§\": \"~4.0.0-rc.1\",", "\"§\": \">=1.10.2\",", "§==1.2.3b1", "§: 1.20.3+build5", "   Compiling § v0.1.2", "§=0x7ffd1234abcd", "§: 0xc000123456", "§ = 0x0000555555", "§: 12.345ms", "§: 100.0%", "§: 123KiB",
		"--- PASS: § (0.00s)", "PASS: §", "=== RUN   §", "§ ... ok", "§: OK", "§   -> a1b2", "  inflating: §", "-rw-r--r-- 1 bob bob 1234 Nov 28 18:52 §", "+§", "Only in a: §", "§ | 12 ++++++------", "§.go:12:3: undefined: x1", "test §::v2_works ... ok", "auth::§::Hash2",
	}
	called = []string{
		"password", "test_password", "TestSetPassword", "BenchmarkPassword", "db-password", "generate-password", "check_pass", "DB_PASS", "getpass", "secret", "client_secret", "TestSecret",
		"token", "api_token", "get-token", "TestRefreshToken", "credentials", "registry-creds", "private_key", "TestPrivateKey", "passwd", "TestExplicitPWD", "js-token", "apiKey",
	}
)

// TestOrdinaryOutputStays gives what build tools, test runners and shells print, as they print it and behind marks.
func TestOrdinaryOutputStays(t *testing.T) {
	t.Parallel()
	r := &redact.Redactor{}
	lines := 0
	for _, all := range []struct{ reports, names []string }{{reports, names}, {about, called}} {
		for _, report := range all.reports {
			for _, name := range all.names {
				line := strings.ReplaceAll(report, "§", name)
				for _, text := range []string{line, line + "\n" + line + "\n", "     7→" + line + "\n     8→" + line} {
					got, _ := r.String(text)
					if text != got {
						t.Errorf("%q: %q", text, got)
					}
					lines++
				}
				if !strings.ContainsAny(line, "\\\"") {
					got, _, err := r.JSON([]byte(`{"text":"` + strings.ReplaceAll(line, "\t", `\t`) + `\n"}`))
					require.NoError(t, err)
					require.NotContains(t, string(got), "[redacted:")
				}
			}
		}
	}
	require.Greater(t, lines, 5000)
}

// TestPassIsAName holds that what the lines of tests look like hides no password.
func TestPassIsAName(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"PASS=§", "  PASS: §!", "  PASS: hun§", "PASS: \"§\"", "DB_PASS: §", "DB_PASS   §", "Pass: §", "PWD=§", "mysql_pwd=§", "UID=bob;PWD=§;", "PWD=/kV§/aB3dE5fG", "password: 0x§", "password: 1.2§!", "password ::= '§'",
		"token: 0x" + hexBody(64) + "§",
	} {
		got, n := (&redact.Redactor{}).String(strings.ReplaceAll(text, "§", "Hunter2x"))
		require.NotContains(t, got, "Hunter2x")
		require.Equal(t, 1, n, got)
	}
}
