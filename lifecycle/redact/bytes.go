package redact

import "strings"

// class is a set of bytes.
type class [256]bool

func classOf(ranges string, more string) *class {
	var c class
	for i := 0; i+1 < len(ranges); i += 2 {
		for b := int(ranges[i]); b <= int(ranges[i+1]); b++ {
			c[b] = true
		}
	}
	for i := range len(more) {
		c[more[i]] = true
	}
	return &c
}

var (
	digits    = classOf("09", "")
	hex       = classOf("09afAF", "")
	upperNum  = classOf("AZ09", "")
	alnum     = classOf("AZaz09", "")
	alphabet  = classOf("AZaz", "")
	word      = classOf("AZaz09", "_")
	dash      = classOf("AZaz09", "_-")
	dotted    = classOf("AZaz09", "_-.")
	bearer    = classOf("AZaz09", "_-.~+/=")
	base64    = classOf("AZaz09", "+/=_-")
	pemWord   = classOf("AZaz09", "+/=")
	cookie    = classOf("AZaz09", "+/=_-%")
	crypt     = classOf("AZaz09", "./$=,+")
	capitals  = classOf("AZ09", "_")
	hexDash   = classOf("09afAF", "-")
	capital   = classOf("AZ09", "-")
	classDash = classOf("", "-")
	backslash = classOf("", "\\")
	letters   = classOf("AZaz09", "#")
	teams     = classOf("AZaz09", "-@/")
	kindChar  = classOf("az09", "-")
	tilde     = classOf("AZaz09", "_-.~")
	// valueEnd ends a value that stands without quotes; a mark does not.
	valueEnd = classOf("\x00\x00\x02 ", "\"'`,;&<>(){}]")
	// netrcEnd ends a word of a netrc.
	netrcEnd = classOf("\x00\x00\x02 ", "")
	// What may stand before a sign or a name.
	blank       = classOf("", " \t")
	gap         = classOf("", " \t\r\b\v\f\x7f")
	operator    = classOf("", "?+.|:")
	beforeType  = classOf("", " \t:")
	beforeValue = classOf("", " \t\r\n\"',")
	closing     = classOf("", "\"'\\]")
	// cellGap stands between the cells of a row, cellEnd ends one, ruleLine is what the line below a header is
	// made of, and headerWord a word of a header.
	cellGap    = classOf("", " \t|`\xe2\x94\x95\x82\x83\x91")
	cellEnd    = classOf("", "\t\r\n|`(")
	ruleLine   = classOf("\x80\xbf", "-+|:= \t\r\xe2")
	headerWord = classOf("AZ09", "_-() /#%.")
	// quotePrefix is what Python, SQL and others have before a quotation mark.
	quotePrefix = classOf("", "bBrRuUfFnNLeE")
	// passHost is what a host is made of in .pgpass, passBegin begins a word there and passEnd ends it, lineSpace the
	// last one.
	passHost  = classOf("AZaz09", "._-*/")
	passBegin = classOf("AZaz", "*_")
	passEnd   = classOf("\x00\x00\x02 ", ":\"'")
	lineSpace = classOf("\x00\x00\x02 ", "\"'")
	// dsnWord is what the address of a database is made of.
	dsnWord = classOf("AZaz09", "_-.:/!#$%^&*+=~\x01")
	// A pointer, or a variable of Ruby, has the first before the others.
	pointer  = classOf("", "*&@")
	selector = classOf("AZaz09", "_.")
	// csvBefore stands before a name in the header of a list, csvName is what the name is made of and csvHeader what
	// the header is made of; tableEnd ends the name of a table of SQL, statementEnd a statement, and space stands
	// between its words.
	csvBefore    = classOf("", "\",")
	csvName      = classOf("AZaz09", "_- ")
	csvHeader    = classOf("AZaz09", "_- .,\"#")
	tableEnd     = classOf("", "(;'=")
	statementEnd = classOf("", "\r\n;")
	space        = classOf("", " \t\r\n")
	// blockSign is how a block scalar of YAML is indented and ended.
	blockSign = classOf("09", "+-")
	// testName is what the name of a test is made of, timeChar a time before it; pathBegin begins a path and pathChar is in one.
	testName  = classOf("AZaz09", "_-.:/\\[]#@+")
	timeChar  = classOf("09", " :.,-/[]TZ")
	pathBegin = classOf("", "./~")
	pathChar  = classOf("AZaz09", "_-.+@/\\:~")
	slash     = classOf("", "/\\")
	// versionBegin and versionEnd stand around the numbers of a version.
	versionBegin = classOf("", "^~<>=v")
	versionEnd   = classOf("AZaz09", ".-+")
	// markEnd ends what a tool shows before a line, the first two of these an arrow and a bar.
	markEnd = classOf("09", "\x92\x82:-+<>\t")
	// fileEnd ends the name of a file before a line.
	fileEnd = classOf("\x00\x00\x01 ", ":\"'`<>|=(){}")
	// lineEnd ends a header's value.
	lineEnd = classOf("", "\r\n\"'`")
	// parameter is what a terminal's control sequence has before its letter.
	parameter = classOf("09", ";:?")
	// urlEnd ends a URL's authority.
	urlEnd = classOf("\x00\x00\x02 ", "\"'`<>/?#\\")
)

// run returns the end of the run of c's bytes that starts at i, looking at most
// n bytes far; n < 0 is no bound.
func run(b []byte, i int, c *class, n int) int {
	end := len(b)
	if n >= 0 && end-i > n {
		end = i + n
	}
	for i < end && c[b[i]] {
		i++
	}
	return i
}

// split returns texts that bars separate.
func split(texts string) []string { return strings.Split(texts, "|") }

func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
func isUpper(c byte) bool  { return c >= 'A' && c <= 'Z' }
func isLower(c byte) bool  { return c >= 'a' && c <= 'z' }
func isLetter(c byte) bool { return isUpper(c) || isLower(c) }

// wordStart reports whether a word may begin at b[i]. The n of a "\n" that was
// escaped is no letter of a word: logs and nested JSON are full of them.
func wordStart(b []byte, i int) bool {
	if i == 0 || !alnum[b[i-1]] {
		return true
	}
	return i >= 2 && b[i-2] == '\\' && (b[i-1] == 'n' || b[i-1] == 't' || b[i-1] == 'r')
}
