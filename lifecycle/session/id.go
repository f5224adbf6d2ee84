package session

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// An ID names a session: {module}-YYYYMMDD-{counter}, the day in UTC.
type ID struct {
	Module  string
	Day     string // YYYYMMDD
	Counter uint64 // from 1; never given twice for a module and a day
}

// NewID returns the ID of a module with a counter, on the day of now in UTC.
func NewID(module string, now time.Time, counter uint64) (ID, error) {
	if err := ValidateModule(module); err != nil {
		return ID{}, err
	}
	if y := now.UTC().Year(); counter == 0 || y < 1 || y > 9999 {
		return ID{}, &InvalidError{Field: "counter or day", Value: fmt.Sprintf("%d, %s", counter, now), Want: "a counter from 1 on and a year of four digits"}
	}
	return ID{Module: module, Day: now.UTC().Format("20060102"), Counter: counter}, nil
}

// ParseID parses an ID. It begins at the end, because a module's name may look like an ID
// too. It accepts what [ID.String] returns and nothing else.
func ParseID(s string) (ID, error) {
	rest, counter, ok := cutLast(s)
	module, day, ok2 := cutLast(rest)
	n, err := strconv.ParseUint(counter, 10, 64)
	t, noDay := time.Parse("20060102", day)
	id := ID{Module: module, Day: day, Counter: n}
	if !ok || !ok2 || ValidateModule(module) != nil || err != nil || n == 0 || noDay != nil || t.Year() < 1 || id.String() != s {
		return ID{}, &InvalidError{Field: "session ID", Value: s, Want: "{module}-YYYYMMDD-{counter}, such as auth-20260214-1"}
	}
	return id, nil
}

func cutLast(s string) (before, after string, ok bool) {
	i := strings.LastIndexByte(s, '-')
	if i < 0 {
		return "", "", false
	}
	return s[:i], s[i+1:], true
}

func (id ID) String() string {
	return id.Module + "-" + id.Day + "-" + strconv.FormatUint(id.Counter, 10)
}

// IsZero reports whether the ID is the zero value.
func (id ID) IsZero() bool { return id == ID{} }

// Compare orders IDs by day, then counter, then module, which is roughly by age.
func (id ID) Compare(other ID) int {
	return cmp.Or(strings.Compare(id.Day, other.Day), cmp.Compare(id.Counter, other.Counter), strings.Compare(id.Module, other.Module))
}

// ValidateModule returns an [*InvalidError] if a name cannot be that of a module.
func ValidateModule(name string) error {
	alnum := func(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' }
	ok := len(name) >= 1 && len(name) <= 64
	for i := 0; i < len(name) && ok; i++ {
		inside := i > 0 && i < len(name)-1
		ok = alnum(name[i]) || inside && (name[i] == '_' || name[i] == '-')
	}
	if !ok {
		return &InvalidError{Field: "module", Value: name, Want: "1 to 64 lower-case letters, digits, - and _, beginning and ending with a letter or digit"}
	}
	return nil
}
