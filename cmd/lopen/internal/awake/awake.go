// Package awake keeps the machine from falling asleep while a run works.
//
// # Concurrency
//
// Keep may be called from any goroutine, and what it returns once from any.
//
// # Caveats
//
// It is a request to the system: where there is no systemd-logind and no caffeinate, on
// Windows for one, the machine sleeps when it would.
package awake

import (
	"github.com/rs/zerolog"
)

// Keep asks the system to stay awake until release is called, or until this process has
// ended in whatever way. why is shown to who asks the system what keeps it awake. Where
// that is not to be had, it does nothing and logs so at debug level.
func Keep(why string, log *zerolog.Logger) (release func()) {
	cmd := request(why)
	if cmd == nil {
		return func() {}
	}
	detach(cmd)
	hold, err := cmd.StdinPipe() // the request ends with it
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		log.Debug().Err(err).Msg("the machine may fall asleep")
		return func() {}
	}
	go func() {
		if err := cmd.Wait(); err != nil {
			log.Debug().Err(err).Msg("the machine may fall asleep")
		}
	}()
	return func() { _ = hold.Close() }
}
