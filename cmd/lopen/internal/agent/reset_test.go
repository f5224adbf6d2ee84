package agent

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestResetAt(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	now := time.Date(2026, 11, 22, 22, 30, 30, 0, berlin) // 21:30:30 UTC
	at := func(day, hour, minute int) time.Time { return time.Date(2026, 11, day, hour, minute, 0, 0, berlin) }
	for text, want := range map[string]time.Time{
		"Claude AI usage limit reached|1795361191":                      {}, // it lies behind
		"Claude AI usage limit reached|1795461191":                      time.Unix(1795461191, 0),
		"Claude AI usage limit reached|9995461191":                      {}, // in the year 2286
		"You've hit your limit · resets 3am (Europe/Berlin)":            at(23, 3, 0),
		"You've hit your session limit · resets 3:26pm (UTC)":           at(23, 16, 26),
		"You've hit your limit · resets 11pm (Europe/Berlin)":           at(22, 23, 0),
		"You've hit your limit · resets 12am (Europe/Berlin)":           at(23, 0, 0),
		"You've hit your limit · resets 12pm":                           at(23, 12, 0),
		"You've hit your limit · resets 23:15":                          at(22, 23, 15),
		"You've hit your limit · resets 3am (Europe/Atlantis)":          {},
		"Weekly limit reached ∙ resets Nov 27, 5pm":                     at(27, 17, 0),
		"You've hit your weekly limit · resets Nov 27 at 5pm (UTC)":     at(27, 18, 0),
		"or try again at 11:26 PM.":                                     at(22, 23, 26),
		"or try again at 10:30 PM.":                                     now.Add(time.Minute), // it has just begun
		"or try again at 10:10 PM.":                                     at(23, 22, 10),
		"or try again at Nov 25th, 2026 3:29 PM.":                       at(25, 15, 29),
		"or try again at Nov 21st, 2026 3:29 PM.":                       {},
		"or try again at Nov 25th, 2036 3:29 PM.":                       {},
		"or try again in 2 hours 5 minutes.":                            now.Add(125 * time.Minute),
		"or try again in 2 days 17 hours 14 minutes.":                   now.Add(65*time.Hour + 14*time.Minute),
		"or try again in 1 minute.":                                     now.Add(time.Minute),
		"Please try again in 1.5s. Visit":                               now.Add(1500 * time.Millisecond),
		"Please try again in 6m0s.":                                     now.Add(6 * time.Minute),
		"Your quota will reset after 12h3m4s.":                          now.Add(12*time.Hour + 3*time.Minute + 4*time.Second),
		"retry after 30 seconds":                                        now.Add(30 * time.Second),
		"try again in 999999999999999999999 days":                       {},
		"try again in 400 days":                                         {},
		"or try again later.":                                           {},
		"or try again at 26:99.":                                        {},
		"or try again at 0:30 PM.":                                      {},
		"You've hit your limit · resets Feb 31, 5pm":                    {},
		"the limit of 3 requests in this plan is at 5 of 7, see page 9": {},
	} {
		require.True(t, want.Equal(resetAt(text, now)), "%s: %s", text, resetAt(text, now))
	}
	december := time.Date(2026, 12, 30, 12, 0, 0, 0, time.UTC)
	require.Equal(t, time.Date(2027, 1, 2, 17, 0, 0, 0, time.UTC), resetAt("resets Jan 2, 5pm", december))
	// A night without the hour between two and three.
	spring := time.Date(2026, 3, 29, 0, 30, 0, 0, berlin)
	require.True(t, time.Date(2026, 3, 29, 1, 0, 0, 0, time.UTC).Equal(resetAt("resets 3am", spring)))
}
