package terminal

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer/plain"
)

// onTerminal is a stream that believes to lead to a terminal.
func onTerminal() (*Stream, *bytes.Buffer) {
	var b bytes.Buffer
	s := New(&b)
	s.terminal = true
	return s, &b
}

func TestText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, in, want string }{
		{"plain", "a b\tc\nd", "a b\tc\nd"},
		{"letters and emoji", "Größe 日本 ✔️ 👍🏽 e\u0301", "Größe 日本 ✔️ 👍🏽 e\u0301"},
		{"no-break space", "a\u00a0b", "a\u00a0b"},
		{"private use", "\ue0a0 main", "\ue0a0 main"},
		{"colour", "\x1b[31mred\x1b[0m", `\x1b[31mred\x1b[0m`},
		{"cursor", "\x1b[2J\x1b[H", `\x1b[2J\x1b[H`},
		{"title", "\x1b]0;x\x07", `\x1b]0;x\x07`},
		{"clipboard", "\x1b]52;c;eA==\x1b\\", `\x1b]52;c;eA==\x1b\`},
		{"alternate screen", "\x1b[?1049h", `\x1b[?1049h`},
		{"C1 as a rune", "\u009b2J", `\u009b2J`},
		{"C1 as a byte", "\x9b2J", `\x9b2J`},
		{"carriage return", "bad\rgood", `bad\rgood`},
		{"backspace", "bad\b\b\bgood", `bad\x08\x08\x08good`},
		{"delete, NUL", "\x7f\x00", `\x7f\x00`},
		{"bidirectional", "\u202egpj.exe\u2066\u200f", `\u202egpj.exe\u2066\u200f`},
		{"invisible", "a\u200bb\u00adc\ufeffd", `a\u200bb\u00adc\ufeffd`},
		{"invisible letters and marks", "\u3164\u115f\u034f\ufe00", `\u3164\u115f\u034f\ufe00`},
		{"tags", "\U000e0041", `\U000e0041`},
		{"line separators", "a\u2028b\u2029\u0085", `a\u2028b\u2029\u0085`},
		{"no UTF-8", "\xff\xc3(\xe2\x82\xf0\x9f\x98", `\xff\xc3(\xe2\x82\xf0\x9f\x98`},
		{"replacement character", "\ufffd", "\ufffd"},
		{"noncharacter", "\uffff", `\uffff`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			splits(t, c.in, func(pieces ...string) {
				var b bytes.Buffer
				s := New(&b)
				write(t, s, pieces...)
				require.NoError(t, s.Close())
				require.Equal(t, c.want, b.String(), "%q", pieces)
			})
			require.Equal(t, strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(c.want), plain.Line(c.in))
		})
	}
}

func TestOutputOnATerminal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, in, want string }{
		{"colour", "\x1b[1;31mred\x1b[0m.\n", "\x1b[1;31mred\x1b[0m.\n"},
		{"short reset", "\x1b[32mg\x1b[m.", "\x1b[32mg\x1b[0m."},
		{"ends with the line and goes on in the next", "\x1b[31ma\nb\n", "\x1b[31ma\x1b[0m\n\x1b[31mb\x1b[0m\n"},
		{"left on", "\x1b[41ma", "\x1b[41ma\x1b[0m"},
		{"nothing is drawn", "\x1b[31m\x1b[32m\x1b[0m", ""},
		{"from one to another", "\x1b[31ma\x1b[1mb\x1b[39mc", "\x1b[31ma\x1b[0;1;31mb\x1b[0;1mc\x1b[0m"},
		{"bright", "\x1b[91;102ma", "\x1b[91;102ma\x1b[0m"},
		{"256", "\x1b[38;5;208;48;5;1ma", "\x1b[38;5;208;48;5;1ma\x1b[0m"},
		{"true", "\x1b[38;2;1;2;3ma", "\x1b[38;2;1;2;3ma\x1b[0m"},
		{"colons", "\x1b[38:2::1:2:3;48:5:7;4:3ma", "\x1b[4;38;2;1;2;3;48;5;7ma\x1b[0m"},
		{"off", "\x1b[1;3;4;7;9ma\x1b[22;23;24;27;29mb", "\x1b[1;3;4;7;9ma\x1b[0mb"},
		{"hidden", "\x1b[8mb", `\x1b[8mb`},
		{"unknown parameter", "\x1b[1;77mb", `\x1b[1;77mb`},
		{"too large", "\x1b[38;5;256ma\x1b[99999999999999999999m", `\x1b[38;5;256ma\x1b[99999999999999999999m`},
		{"half of a colour", "\x1b[38;5ma\x1b[38ma\x1b[38;2;1;2mb", `\x1b[38;5ma\x1b[38ma\x1b[38;2;1;2mb`},
		{"private", "\x1b[?25m\x1b[>4;2m", `\x1b[?25m\x1b[>4;2m`},
		{"too long", "\x1b[" + strings.Repeat("1;", 40) + "1m", `\x1b[` + strings.Repeat("1;", 40) + "1m"},
		{"cut off", "\x1b[3", `\x1b[3`},
		{"in an escape sequence", "\x1b\x1b[31ma\x1b[\x1b[32mb", `\x1b` + "\x1b[31ma" + `\x1b[` + "\x1b[0;32mb\x1b[0m"},
		{"cursor, clipboard", "\x1b[1A\x1b[2K\x1b]52;c;eA==\x07\u009b1m", `\x1b[1A\x1b[2K\x1b]52;c;eA==\x07\u009b1m`},
		{"progress", "\r10%\r20%\r\ndone\r\n\r\nx", "10%\n20%\ndone\n\nx"},
		{"several returns", "a\r\r\nb\r\rc", "a\nb\nc"},
		{"overwritten", "rm -rf /\rmake test", "rm -rf /\nmake test"},
		{"rune", "\x1b[31mä\u202e", "\x1b[31mä" + `\u202e` + "\x1b[0m"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			splits(t, c.in, func(pieces ...string) {
				s, b := onTerminal()
				write(t, s.Output(), pieces...)
				require.NoError(t, s.Close())
				require.Equal(t, c.want, b.String(), "%q", pieces)
			})
		})
	}
}

// splits calls fn with a text whole, in single bytes, and split at every byte.
func splits(t *testing.T, text string, fn func(pieces ...string)) {
	t.Helper()
	fn(text)
	fn(strings.Split(text, "")...)
	single := make([]string, len(text))
	for i := range text {
		fn(text[:i], text[i:])
	}
	for i := range len(text) {
		single[i] = text[i : i+1]
	}
	fn(single...)
}

func write(t *testing.T, w io.Writer, pieces ...string) {
	t.Helper()
	for _, p := range pieces {
		n, err := io.WriteString(w, p)
		require.NoError(t, err)
		require.Equal(t, len(p), n)
	}
}

func TestByteForByteIntoAPipe(t *testing.T) {
	t.Parallel()
	const text = "\x1b[2J\xff\u202e\r\n"
	var b bytes.Buffer
	s := New(&b)
	write(t, s.Output(), text)
	write(t, s.Content(), text)
	require.Equal(t, text+text, b.String())

	on, shown := onTerminal()
	write(t, on.Content(), text)
	require.Equal(t, `\x1b[2J\xff\u202e\r`+"\n", shown.String())
}

// What another writes on the same terminal is not coloured by what was left on.
func TestColourStaysWithItsWriter(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	stdout, stderr := Streams(&b, &b)
	stdout.terminal, stderr.terminal, stdout.device = true, true, stderr.device
	agent := stdout.Output()
	write(t, agent, "\x1b[31mred \x1b[3")
	require.True(t, stderr.InLine())
	write(t, stderr, "warning\n")
	require.False(t, stderr.InLine())
	write(t, agent, "2mgreen")
	stderr.Control("\r\x1b[K")
	write(t, stdout.Output(), "plain\n")
	require.Equal(t, "\x1b[31mred \x1b[0mwarning\n\x1b[32mgreen\x1b[0m\r\x1b[Kplain\n", b.String())
}

func TestJSONKeepsItsValue(t *testing.T) {
	t.Parallel()
	want := []string{"\x1b[2J\u007f", "\u009b\u202e\ufeff", "\U000e0041 😀 ä", "\"\\\n\t\r"}
	data, err := json.Marshal(want)
	require.NoError(t, err)
	splits(t, string(data), func(pieces ...string) {
		var b bytes.Buffer
		write(t, New(&b).JSON(), pieces...)
		var got []string
		require.NoError(t, json.Unmarshal(b.Bytes(), &got), b.String())
		require.Equal(t, want, got)
		require.NotContains(t, b.String(), "\u202e")
		require.Contains(t, b.String(), `\udb40\udc41 😀 ä`)
	})
}

func TestWriteError(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	s := New(failing{broken})
	n, err := s.Write([]byte("x"))
	require.ErrorIs(t, err, broken)
	require.Zero(t, n)
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// What is held back and what is kept between two writes has a bound, whatever is written.
func TestHoldsLittle(t *testing.T) {
	t.Parallel()
	s := New(io.Discard)
	s.terminal = true
	out := s.Output()
	for _, text := range []string{"\x1b[" + strings.Repeat("1;", 1<<20), strings.Repeat("\x1b", 1<<20), strings.Repeat("\x1b[31m", 1<<18), strings.Repeat("\U000e0041", 1<<18)} {
		write(t, out, text)
		require.LessOrEqual(t, len(s.colored.held), maxSGR)
		require.LessOrEqual(t, cap(s.device.out), 16*chunk)
	}
}

var ownColour = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// requirePlain requires that nothing of a text but colours moves a terminal.
func requirePlain(t *testing.T, text string) {
	t.Helper()
	text = ownColour.ReplaceAllString(text, "")
	require.True(t, utf8.ValidString(text), "%q", text)
	for _, r := range text {
		require.False(t, unicode.IsControl(r) && r != '\n' && r != '\t', "%q in %q", r, text)
		require.False(t, unicode.In(r, unicode.Bidi_Control, unicode.Cf, unicode.Zl, unicode.Zp), "%q in %q", r, text)
	}
}

func FuzzStream(f *testing.F) {
	for _, text := range []string{
		"make test\n", "\x1b[31mred\x1b[0m", "\x1b]52;c;eA==\x07", "\x1b[?1049h\x1b[2J", "a\rb\r\n", "\u202e\u009b\x9b", "\xff\xe2\x82", "\x1b[38;2;1;2;3m\x1b[38:5:1m x", "\x1b[1\x1b[1", "\U000e0041",
	} {
		f.Add(text, uint16(len(text)/2))
	}
	f.Fuzz(func(t *testing.T, text string, at uint16) {
		i := min(int(at), len(text))
		s, b := onTerminal()
		write(t, s.Output(), text[:i], text[i:])
		require.NoError(t, s.Close())
		requirePlain(t, b.String())
		require.Equal(t, style{}, s.device.set)

		whole, c := onTerminal()
		write(t, whole.Output(), text)
		require.NoError(t, whole.Close())
		require.Equal(t, c.String(), b.String(), "split at %d", i)

		s, b = onTerminal()
		write(t, s, text[:i], text[i:])
		require.NoError(t, s.Close())
		requirePlain(t, b.String())
		require.NotContains(t, b.String(), "\x1b")

		requirePlain(t, plain.Line(text))
		require.NotContains(t, plain.Line(text), "\n")
		require.NotContains(t, plain.Line(text), "\x1b")

		data, err := json.Marshal(text)
		require.NoError(t, err)
		var want, got string
		require.NoError(t, json.Unmarshal(data, &want))
		s, b = onTerminal()
		write(t, s.JSON(), string(data[:min(i, len(data))]), string(data[min(i, len(data)):]))
		requirePlain(t, b.String())
		require.NoError(t, json.Unmarshal(b.Bytes(), &got))
		require.Equal(t, want, got)
	})
}

func BenchmarkOutput(b *testing.B) {
	for name, text := range map[string]string{
		"lines":   strings.Repeat("ok  \tgithub.com/some/thing\t0.004s\n", 1000),
		"colours": strings.Repeat("\x1b[32mok\x1b[0m  github.com/some/thing\n", 1000),
		"hostile": strings.Repeat("\x1b[2J\u202e\x9b", 4000),
	} {
		b.Run(name, func(b *testing.B) {
			s := New(io.Discard)
			s.terminal = true
			out := s.Output()
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				_, _ = io.WriteString(out, text)
			}
		})
	}
}
