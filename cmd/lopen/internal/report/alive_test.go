package report

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
)

// pieces are what an agent may say that could be alive, or be taken for lopen's own.
var pieces = []string{
	"![a](http://x.example/a.png)", "[a](javascript:x)", "[a]: http://x.example", "[a]", "[a]: b", "[a][b]", "[b]", "javascript:x", "<img src=x>", "<http://x.example/>", "<!--", "http://x.example/y", "www.x.example", "a@x.example", "@all", "a&#64;x.example",
	"`", "``", "```", "~~~", "\\", "|", "**", "_", "# h", "## Failed", "#12", "- x", "1. x", "> x", "===", "---", "/close", "a", "a", "word", " ", " ", " ", "\n", "\n\n", "\t", "\x1b[31m", "\u202e",
}

// fill sets every text that a value has, whatever its name, and gives each list two elements. A field that
// is new is set as well.
func fill(v reflect.Value, say func() string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(say())
	case reflect.Int, reflect.Int64:
		v.SetInt(2)
	case reflect.Float64:
		v.SetFloat(2)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fill(v.Field(i), say)
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fill(v.Index(i), say)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), say)
	}
}

// TestNothingIsAliveInAReport makes reports in which every text is hostile. A reader of Markdown, or GitHub, finds
// no link, no image, no HTML, and no heading that is not lopen's.
func TestNothingIsAliveInAReport(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	say := func() string {
		var b strings.Builder
		for range 1 + rng.IntN(8) {
			b.WriteString(pieces[rng.IntN(len(pieces))])
		}
		return b.String()
	}
	parser := goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser()
	for range 500 {
		var one Report
		parts := make([]Part, 2)
		steps := make([]Step, 2)
		fill(reflect.ValueOf(&one).Elem(), say)
		fill(reflect.ValueOf(&parts).Elem(), say)
		fill(reflect.ValueOf(&steps).Elem(), say)
		for _, r := range []*Report{&one, parts[0].Report, parts[1].Report} { // which are checked when an ID is read
			r.Module, r.Session = "m", "m-20260214-1"
		}
		parts[0].Module, parts[1].Module, parts[1].Done = "m", "m", true
		var b bytes.Buffer
		require.NoError(t, one.Markdown(&b, time.UTC))
		b.WriteString("\n")
		require.NoError(t, Several(&b, time.UTC, parts, steps))
		source := b.Bytes()
		var headings []string
		require.NoError(t, ast.Walk(parser.Parse(text.NewReader(source)), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
			switch n.Kind() {
			case ast.KindLink, ast.KindImage, ast.KindAutoLink, ast.KindRawHTML, ast.KindHTMLBlock:
				require.Fail(t, "alive", "%s in\n%s", n.Kind(), source)
			case ast.KindHeading:
				if entering {
					title, _, _ := strings.Cut(string(n.Lines().Value(source)), " ")
					headings = append(headings, strings.Trim(title, ":"))
				}
			}
			return ast.WalkContinue, nil
		}))
		headings = slices.DeleteFunc(headings, func(h string) bool { return h == "m" || h == "1" })
		require.Equal(t, []string{"Failed", "Not", "Waited", "Taken", "Refused", "Limits", "Context", "Done", "Next", "Failed", "Waited", "Taken", "Refused", "Next"}, headings, "%s", source)
		require.NotContains(t, b.String(), "\x1b")
		require.NotContains(t, b.String(), "\u202e")
		require.NotContains(t, b.String(), glue)
	}
}
