package failing

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const maxLines = 8

// The samples are what the tools printed, with other paths.
func TestUsefulLinesOfTools(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"go-test": `
--- FAIL: TestTotal (0.00s)
    cart_test.go:7: Total([1 2]) = 2, want 3
--- FAIL: TestEmpty (0.00s)
    --- FAIL: TestEmpty/nil (0.00s)
        cart_test.go:14: got 0, want 9`,
		"go-test-v": `
    cart_test.go:7: Total([1 2]) = 2, want 3
--- FAIL: TestTotal (0.00s)
    cart_test.go:14: got 0, want 9
--- FAIL: TestEmpty (0.00s)
    --- FAIL: TestEmpty/nil (0.00s)`,
		"go-build": `
price/price.go:4:17: declared and not used: x
price/price.go:4:25: undefined: y
--- FAIL: TestTotal (0.00s)
    cart_test.go:7: Total([1 2]) = 2, want 3
--- FAIL: TestEmpty (0.00s)
    --- FAIL: TestEmpty/nil (0.00s)
        cart_test.go:14: got 0, want 9`,
		"go-vet": `
vet: price/price.go:4:25: undefined: y`,
		"go-panic": `
--- FAIL: TestEuro (0.00s)
panic: assignment to entry in nil map [recovered, repanicked]`,
		"cargo-test": `
test tests::sums ... FAILED
thread 'tests::sums' (3479) panicked at src/lib.rs:11:9:
assertion ` + "`left == right`" + ` failed
  left: 2
 right: 3`,
		"cargo-build": `
error[E0308]: mismatched types
  --> src/lib.rs:19:22
   |                ---   ^^^ expected ` + "`i32`, found `&str`" + `
   |                expected ` + "`i32`" + ` because of return type`,
		"npm-node": `
not ok 1 - sums
  error: |-
    Expected values to be strictly equal:
    2 !== 3
  expected: 3
  actual: 2`,
		"npm-jest": `
✕ sums (17 ms)
● sums
  expect(received).toBe(expected) // Object.is equality
  Expected: 3
  Received: 2`,
		"pytest": `
E       assert 2 == 3
E        +  where 2 = total([1, 2])
test_total.py:6: AssertionError
FAILED test_total.py::test_sums - assert 2 == 3`,
	} {
		data, err := os.ReadFile(filepath.Join("testdata", "output", name+".txt"))
		require.NoError(t, err)
		require.Equal(t, strings.TrimPrefix(want, "\n"), strings.Join(Last(string(data), maxLines), "\n"), name)
	}
}

func TestUsefulLinesOfAnything(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		about, output string
		want          []string
	}{
		{"nothing", "", nil},
		{"blank lines, rules and progress", "\n  \n-----\n[=====>    ]  45%\n⠋⠙\n\x1b[32m\x1b[0m\n", nil},
		{"no line names a failure: the last ones", "a\nb\nc\nd\ne\nf\ng\nh\ni\n\n", []string{"b", "c", "d", "e", "f", "g", "h", "i"}},
		{"one that does, among others", "begin\n\x1b[31mError: boom\x1b[0m\r\nmore\nand\nfar away\nend\n", []string{"Error: boom", "more", "and"}},
		{"what a carriage return overwrote", "10%\r50%\rfatal: no such branch\n", []string{"fatal: no such branch"}},
		{"a tab, and what all lines are indented by", "\terror: a\n\t\tb\n", []string{"error: a", "    b"}},
		{"no text", "error: \xff\n", []string{"error: �"}},
	} {
		require.Equal(t, c.want, Last(c.output, maxLines), c.about)
	}
	require.Equal(t, []string{"error: 1", "error: 2"}, First("noise\nerror: 1\nerror: 2\nerror: 3\n", 2))
	long := Last("error: "+strings.Repeat("é", 1000), maxLines)
	require.LessOrEqual(t, len(long[0]), maxLine+len("…"))
}

// FuzzUseful: whatever a check prints, the lines are few, short and text.
func FuzzUseful(f *testing.F) {
	f.Add("--- FAIL: TestA\n\x1b[31mx\x1b[0m\r\n")
	f.Fuzz(func(t *testing.T, output string) {
		lines := Last(output, maxLines)
		require.LessOrEqual(t, len(lines), maxLines)
		for _, l := range lines {
			require.LessOrEqual(t, len(l), maxLine+len("…"))
			require.NotContains(t, l, "\n")
			require.Equal(t, l, strings.ToValidUTF8(l, ""))
		}
	})
}
