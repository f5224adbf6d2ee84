package agent

import (
	"strconv"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/writer/plain"
)

// maxReset is the farthest that a limit's end is believed to be away.
const maxReset = 32 * 24 * time.Hour

var (
	epochs = plain.Pattern(`\|(\d{10})(?:\D|$)`)
	// in 2 hours 5 minutes, in 1.5s, in 6m0s, after 30 seconds
	spans = plain.Pattern(`(?i)\b(?:in|after) ((?:(?:about )?\d+(?:\.\d+)? ?(?:days?|d|hours?|hrs?|h|minutes?|mins?|m|seconds?|secs?|ms|s)\b ?(?:and )?,? ?)+|(?:\d+(?:\.\d+)?(?:d|h|ms|m|s))+)`)
	parts = plain.Pattern(`(?i)(\d+(?:\.\d+)?) ?(days?|d|hours?|hrs?|h|minutes?|mins?|ms|m|seconds?|secs?|s)`)
	// 3am, 3:30pm (Europe/Berlin), at 11:26 PM, Nov 23rd, 2026 1:00 PM, Oct 9, 5pm, Nov 23 at 3pm, 15:04
	moments = plain.Pattern(`(?i)\b(?:resets?|again|available|at)(?: at| on)? (?:(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]* (\d{1,2})(?:st|nd|rd|th)?,?(?: (\d{4}),?)?(?: at)? ?)?` +
		`(?:(\d{1,2})(?::(\d{2}))?(?::\d{2})? ?(am|pm)|(\d{1,2}):(\d{2}))(?: ?\(([A-Za-z0-9_+/-]{1,64})\))?`)
)

// resetAt finds in the words about a limit when it is over: the next such moment after now,
// in the zone that is named, else in now's. It is zero when they do not say.
func resetAt(text string, now time.Time) time.Time {
	if m := epochs().FindStringSubmatch(text); m != nil {
		n, _ := strconv.ParseInt(m[1], 10, 64) // ten digits
		return plausible(time.Unix(n, 0), now)
	}
	if m := moments().FindStringSubmatch(text); m != nil {
		return plausible(moment(m, now), now)
	}
	if m := spans().FindStringSubmatch(text); m != nil {
		return plausible(now.Add(span(m[1])), now)
	}
	return time.Time{}
}

// moment is the time that a match of moments names.
func moment(m []string, now time.Time) time.Time {
	zone := now.Location()
	if m[9] != "" {
		z, err := time.LoadLocation(m[9])
		if err != nil {
			return time.Time{}
		}
		zone = z
	}
	now = now.In(zone)
	hour, minute, ok := timeOfDay(m)
	if !ok {
		return time.Time{}
	}
	if m[1] == "" {
		return nextTime(hour, minute, now)
	}
	year := now.Year()
	t, err := time.Parse("Jan", m[1]) // in any case
	if err != nil || atoi(m[2]) < 1 || atoi(m[2]) > 31 {
		return time.Time{}
	}
	if m[3] != "" {
		return time.Date(atoi(m[3]), t.Month(), atoi(m[2]), hour, minute, 0, 0, zone)
	}
	at := time.Date(year, t.Month(), atoi(m[2]), hour, minute, 0, 0, zone)
	if now.Sub(at) > maxReset { // January, named in December
		at = time.Date(year+1, t.Month(), atoi(m[2]), hour, minute, 0, 0, zone)
	}
	return at
}

// timeOfDay is the hour and the minute of a match of moments.
func timeOfDay(m []string) (hour, minute int, ok bool) {
	hour, minute = atoi(m[4])%12, atoi(m[5])
	switch {
	case m[7] != "":
		hour, minute = atoi(m[7]), atoi(m[8])
	case atoi(m[4]) < 1 || atoi(m[4]) > 12:
		return 0, 0, false
	case strings.EqualFold(m[6], "pm"):
		hour += 12
	}
	return hour, minute, hour <= 23 && minute <= 59
}

// nextTime is when a clock shows a time next, in the zone of now. Words leave the seconds out: a
// minute that has just begun is not tomorrow's.
func nextTime(hour, minute int, now time.Time) time.Time {
	year, month, day := now.Date()
	at := time.Date(year, month, day, hour, minute, 0, 0, now.Location())
	switch {
	case at.After(now):
		return at
	case now.Sub(at) < 5*time.Minute:
		return now.Add(time.Minute)
	}
	return time.Date(year, month, day+1, hour, minute, 0, 0, now.Location())
}

// span is a duration in words, at most a little more than maxReset.
func span(s string) (d time.Duration) {
	for _, p := range parts().FindAllStringSubmatch(s, 10) {
		n, err := strconv.ParseFloat(p[1], 64)
		if err != nil || n > 1e6 {
			return maxReset + time.Hour
		}
		unit := time.Second
		switch u := strings.ToLower(p[2]); {
		case u == "ms":
			unit = time.Millisecond
		case u[0] == 'd':
			unit = 24 * time.Hour
		case u[0] == 'h':
			unit = time.Hour
		case u[0] == 'm':
			unit = time.Minute
		}
		if n*unit.Hours() > maxReset.Hours() {
			return maxReset + time.Hour
		}
		d += time.Duration(n * float64(unit))
	}
	return d
}

// plausible is a time that can be waited for: later than now, and not absurdly so.
func plausible(t, now time.Time) time.Time {
	if t.After(now) && t.Sub(now) <= maxReset {
		return t
	}
	return time.Time{}
}

func atoi(s string) int {
	n, _ := strconv.Atoi(s) // 0 for none
	return n
}
