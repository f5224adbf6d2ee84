package terminal

import (
	"strconv"
	"strings"
)

// A style is how a terminal draws text. The zero value is the terminal's own.
type style struct {
	attrs  uint16 // bit n is SGR n, 1 to 9
	fg, bg color
}

// A color is what follows 3 or 4 in an SGR parameter: "1" of 31, "8;5;208" of 38;5;208;
// bright ones are "+1". "" is the terminal's own.
type color string

// maxSGR bounds an SGR sequence, in bytes: what is longer is text.
const maxSGR = 64

// sgr looks for an SGR sequence at the beginning of p, which begins with ESC. n is its
// length, 0 if there is none, and -1 if more bytes are needed to know.
func sgr(p []byte) (params []byte, n int) {
	if len(p) > 1 && p[1] != '[' {
		return nil, 0
	}
	for i := 2; i < len(p); i++ {
		switch b := p[i]; {
		case b == 'm':
			return p[2:i], i + 1
		case i == maxSGR || (b < '0' || b > '9') && b != ';' && b != ':':
			return nil, 0
		}
	}
	return nil, -1
}

// with is the style after an SGR sequence; false where one of its parameters is none
// that is known.
func (s style) with(params string) (style, bool) {
	for fields := strings.Split(params, ";"); len(fields) > 0; {
		used := 1
		if sub := strings.Split(fields[0], ":"); len(sub) > 1 {
			if !s.setSub(sub) {
				return s, false
			}
		} else if used = s.set(fields); used == 0 {
			return s, false
		}
		fields = fields[used:]
	}
	return s, true
}

// setSub sets what a parameter with colons says: 4:3 is a curly underline, and 38:2::R:G:B has a
// colour space before the colour.
func (s *style) setSub(sub []string) bool {
	if len(sub) == 6 && sub[1] == "2" {
		sub = append(sub[:2:2], sub[3:]...)
	}
	if sub[0] == "4" && len(sub) == 2 {
		s.attrs |= 1 << 4
		if sub[1] == "0" {
			s.attrs &^= 1 << 4
		}
		return true
	}
	c, used := extended(sub[1:])
	if used != len(sub)-1 {
		return false
	}
	switch sub[0] {
	case "38":
		s.fg = c
	case "48":
		s.bg = c
	default:
		return false
	}
	return true
}

// set sets what the first of some parameters says, and returns how many it takes: 0 where it is
// not known.
func (s *style) set(fields []string) (used int) {
	n, ok := number(fields[0])
	if !ok {
		return 0
	}
	if n == 38 || n == 48 {
		c, used := extended(fields[1:])
		if used == 0 {
			return 0
		}
		*s.ground(n) = c
		return used + 1
	}
	switch {
	case n == 0:
		*s = style{}
	case n < 30:
		return s.setAttribute(n)
	case n == 39 || n == 49:
		*s.ground(n) = ""
	case n < 50 && n%10 < 8:
		*s.ground(n) = color(strconv.Itoa(n % 10))
	case n >= 90 && n < 108 && n%10 < 8:
		*s.ground(n - 60) = color("+" + strconv.Itoa(n%10))
	default:
		return 0
	}
	return 1
}

// ground is the colour that a parameter from 30 to 49 is about.
func (s *style) ground(n int) *color {
	if n < 40 {
		return &s.fg
	}
	return &s.bg
}

// setAttribute is set for a parameter from 1 to 29.
func (s *style) setAttribute(n int) (used int) {
	switch n {
	case 1, 2, 3, 4, 5, 6, 7, 9: // 8 hides what follows
		s.attrs |= 1 << n
	case 21:
		s.attrs |= 1 << 4
	case 22:
		s.attrs &^= 1<<1 | 1<<2
	case 25:
		s.attrs &^= 1<<5 | 1<<6
	case 23, 24, 27, 28, 29:
		s.attrs &^= 1 << (n - 20)
	default:
		return 0
	}
	return 1
}

// extended reads what follows 38 or 48: 5;N or 2;R;G;B. used is how many fields that
// are, 0 if it is something else.
func extended(fields []string) (c color, used int) {
	switch {
	case len(fields) >= 2 && fields[0] == "5":
		used = 2
	case len(fields) >= 4 && fields[0] == "2":
		used = 4
	default:
		return "", 0
	}
	c = "8"
	for _, f := range fields[:used] {
		n, ok := number(f)
		if !ok {
			return "", 0
		}
		c += color(";" + strconv.Itoa(n))
	}
	return c, used
}

// number is a parameter: 0 to 255, "" is 0.
func number(s string) (int, bool) {
	if s == "" {
		return 0, true
	}
	n, err := strconv.ParseUint(s, 10, 8)
	return int(n), err == nil
}

// appendSGR appends what sets a terminal from one style to another.
func appendSGR(b []byte, from, to style) []byte {
	if to == (style{}) {
		return append(b, "\x1b[0m"...)
	}
	b = append(b, "\x1b["...)
	if from != (style{}) {
		b = append(b, "0;"...)
	}
	for n := byte(1); n <= 9; n++ {
		if to.attrs&(1<<n) != 0 {
			b = append(b, '0'+n, ';')
		}
	}
	b = to.bg.append(to.fg.append(b, "3", "9"), "4", "10")
	b[len(b)-1] = 'm'
	return b
}

// append appends the parameters of a colour, with a semicolon after them.
func (c color) append(b []byte, normal, bright string) []byte {
	switch {
	case c == "":
		return b
	case c[0] == '+':
		b = append(append(b, bright...), c[1:]...)
	default:
		b = append(append(b, normal...), c...)
	}
	return append(b, ';')
}
