package main

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// openTerminal opens a pseudo-terminal: what a person has of it, and what a command has.
func openTerminal() (person, terminal *os.File, err error) {
	if person, err = os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0); err != nil {
		return nil, nil, err
	}
	n, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		terminal, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|syscall.O_NOCTTY, 0)
	}
	if err != nil {
		return nil, nil, errors.Join(err, person.Close())
	}
	return person, terminal, nil
}

// asks says of the end of what a command has shown that it waits for a line, or that one ends a wait.
func asks(end string) bool {
	return strings.HasSuffix(end, "[y/N] ") || strings.HasSuffix(end, "[Y/n] ") || strings.HasSuffix(end, "\n> ") || strings.Contains(end, "to go on at once: Enter")
}

// typeAnswers copies what is shown on a terminal, and types the next answer when the command waits for one. It
// returns when nobody has the terminal any more.
func typeAnswers(person *os.File, shown io.Writer, next func() string) {
	tail, b := "", make([]byte, 4096)
	for {
		n, err := person.Read(b)
		_, _ = shown.Write(b[:n])
		if err != nil {
			return
		}
		tail += string(b[:n])
		if tail = tail[max(0, len(tail)-256):]; asks(tail) {
			tail = ""
			_, _ = person.WriteString(next())
		}
	}
}

// drained COMMAND... runs a command on a terminal of its own, on which it types the lines of stdin as answers, and
// shows on the terminal of the script what was shown there. testscript closes that as soon as the command has
// ended: more than a terminal buffers (64 KiB) can be written behind it only then.
func drained() {
	cmd := exec.Command(os.Args[1], os.Args[2:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	script, err := os.OpenFile("/dev/tty", os.O_WRONLY, 0)
	if err != nil { // there is none
		_ = cmd.Run()
		os.Exit(cmd.ProcessState.ExitCode())
	}
	person, terminal, err := openTerminal()
	if err == nil {
		cmd.Stdin, cmd.SysProcAttr = terminal, &syscall.SysProcAttr{Setsid: true, Setctty: true}
		err = cmd.Start()
	}
	if err != nil {
		panic(err)
	}
	_ = terminal.Close()
	answers := bufio.NewReader(os.Stdin)
	typeAnswers(person, withoutCR{script}, func() string {
		if line, err := answers.ReadString('\n'); err == nil {
			return line
		}
		return "\x04"
	})
	_ = cmd.Wait()
	_, _ = script.WriteString(strings.Repeat("\n", 256<<10))
	os.Exit(cmd.ProcessState.ExitCode())
}

// withoutCR takes the CR of the line ends away, which another terminal adds again.
type withoutCR struct{ io.Writer }

func (w withoutCR) Write(b []byte) (int, error) {
	_, err := io.WriteString(w.Writer, strings.ReplaceAll(string(b), "\r\n", "\n"))
	return len(b), err
}
