package main

import "time"

// untilTime is the moment that --until names: the next time that the clock shows it.
func (r *runCall) untilTime(now time.Time) (time.Time, error) {
	if r.until == "" {
		return time.Time{}, nil
	}
	t, err := time.ParseInLocation("15:04", r.until, now.Location())
	if err != nil {
		return time.Time{}, usagef("--until %q: give a time of day like 07:00", r.until)
	}
	y, m, d := now.Date()
	at := time.Date(y, m, d, t.Hour(), t.Minute(), 0, 0, now.Location())
	if !at.After(now) {
		at = time.Date(y, m, d+1, t.Hour(), t.Minute(), 0, 0, now.Location())
	}
	return at, nil
}
