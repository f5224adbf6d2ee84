package main

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/child"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/writer/plain"
)

// lastTime is how long a command that was interrupted twice may take to save and to end.
const lastTime = 2 * time.Second

// interrupts takes the signals of the program until stop is called. The first one that
// ends cancels. The second one kills all processes that were started, as does every way
// from there: it has the program save what it can within lastTime, because timeout(1)
// sends two signals at once. The third ends it when they are dead.
func interrupts(cancel func(), stderr io.Writer) (stop func()) {
	ends, stops := make(chan os.Signal, 2), make(chan os.Signal, 1)
	signal.Notify(ends, endSignals...)
	if len(stopSignals) > 0 {
		signal.Notify(stops, stopSignals...)
	}
	done := make(chan struct{})
	go func() {
		var killed, over chan struct{}
		for n := 0; ; {
			select {
			case <-done:
				return
			case <-stops:
				stopUntilContinued()
			case <-ends:
				n++
				switch n {
				case 1:
					cancel()
				case 2:
					killed, over = make(chan struct{}), make(chan struct{})
					go kill(killed, over, stderr)
				default:
					<-killed
					os.Exit(loop.ExitInterrupted)
				}
			case <-over:
				os.Exit(loop.ExitInterrupted)
			}
		}
	}()
	return func() {
		signal.Stop(stops)
		close(done) // and no Stop(ends): a signal that comes now does not change the exit code
	}
}

// kill ends at once what was started. It closes killed when that is gone, and over when
// the program has had its time after that.
func kill(killed, over chan<- struct{}, stderr io.Writer) {
	n, left := child.KillAll()
	if n > 0 {
		fmt.Fprintln(stderr, "lopen: interrupted again: the command and its processes were killed")
	}
	if len(left) > 0 {
		fmt.Fprintf(stderr, "lopen: processes that it may have started still run; look at them, and end them with: kill %s\n", plain.Quote(strings.Fields(strings.Trim(fmt.Sprint(left), "[]"))...))
	}
	close(killed)
	time.Sleep(lastTime)
	close(over)
}
