package fleet

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/plain"
)

var (
	// ErrNoSchema is returned when the database has no tables of lopen.
	ErrNoSchema = errors.New("the database has no tables of lopen")
	// ErrOldSchema is returned when the tables are older than this lopen; Migrate brings them up to date.
	ErrOldSchema = errors.New("the tables are older than this lopen")
	// ErrNewSchema is returned when the tables need a newer lopen. What is here waits.
	ErrNewSchema = errors.New("the tables need a newer lopen")
	// ErrNotFound is returned when the fleet has no such session or plan.
	ErrNotFound = errors.New("the fleet has none of this name")
	// ErrLeft is why nothing more is shipped of a session: the project has left the fleet.
	ErrLeft = errors.New("the project has left the fleet")
	// ErrGone is returned for a session of which records were replicated and of which the database
	// has nothing any more.
	ErrGone = errors.New("the fleet had records of it and has none any more: it was deleted there, or an older backup was restored")
)

// A HeldError is returned when another process has the lease of a session or a module.
type HeldError struct {
	Name  string // of the session, or the module
	Host  string
	Until time.Time // when the lease is over, unless it is renewed; by the clock of the database
	Left  time.Duration
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("%s runs on %s, whose lease has %s left unless it is renewed", e.Name, e.Host, e.Left.Round(time.Second))
}

// A FencedError is returned when another process took a session and continued it.
type FencedError struct {
	ID     session.ID
	Host   string // who took it
	Common uint64 // the last record that both have; 0 if it is not known
	Head   uint64 // the last record there
}

func (e *FencedError) Error() string {
	s := fmt.Sprintf("session %s was taken by %s", e.ID, e.Host)
	if e.Common > 0 {
		s += fmt.Sprintf(" at record %d", e.Common)
	}
	return s + fmt.Sprintf(", which is at record %d", e.Head)
}

// A waitError is that of a wait that a context ended: the text says what was waited for, and causes are
// that of the context and of the last try.
type waitError struct {
	text   string
	causes []error
}

func (e *waitError) Error() string { return e.text }

func (e *waitError) Unwrap() []error { return e.causes }

// passing reports whether an error of the database may end by itself, so that the call is repeated.
func passing(err error) bool {
	var held *HeldError
	var fenced *FencedError
	return err != nil && !errors.As(err, &held) && !errors.As(err, &fenced) && !errors.Is(err, ErrGone) && !errors.Is(err, ErrLeft)
}

// maxExplained bounds what is said of an error, in bytes: most of it comes from the database.
const maxExplained = 600

// Explain says in words, on one line, why the database could not be used, with what to do if that is known.
func Explain(err error) string {
	return shown(strings.Join(strings.Fields(plain.Clip(explain(err), maxExplained)), " "), maxExplained)
}

func explain(err error) string {
	var pg *pgconn.PgError
	var network *net.OpError
	text := err.Error()
	switch {
	case errors.As(err, new(x509.HostnameError)):
		return text + "; the URL of lopen fleet join has to name the host as the certificate does"
	case errors.As(err, new(x509.UnknownAuthorityError)), errors.As(err, new(*tls.CertificateVerificationError)):
		return text + "; sslrootcert=FILE in the URL of lopen fleet join names the authority that signed it, and sslmode=require has nobody check it"
	case strings.Contains(text, "server refused TLS"):
		return text + "; sslmode=disable in the URL of lopen fleet join sends everything open"
	}
	if errors.As(err, &network) && network.Addr != nil {
		text = fmt.Sprintf("%s: %v", network.Addr, network.Err)
	}
	switch {
	case errors.Is(err, ErrNoSchema), errors.Is(err, ErrOldSchema):
		return text + "; lopen fleet join makes them"
	case errors.Is(err, ErrNewSchema):
		return text + "; update lopen: what is here stays in the log until then"
	case errors.Is(err, context.DeadlineExceeded):
		return "the database does not answer: " + text
	case errors.As(err, new(*pgproto3.ExceededMaxBodyLenErr)):
		return "the database says more at once than anything has that lopen asks for: " + text
	case !errors.As(err, &pg):
		return text
	}
	switch text = pg.Message; pg.Code {
	case "28P01", "28000":
		return text + "; put the password into the file that PGPASSFILE names, or ~/.pgpass"
	case "42501":
		return text + "; lopen fleet sql --roles has the rights that a runner needs"
	case "53100":
		return "the disk of the database is full: " + text
	case "25006":
		return "the database is a standby: " + text
	}
	return text
}

// Foreign reports whether an error is of the database or of the way to it.
func Foreign(err error) bool {
	var pg *pgconn.PgError
	var connect *pgconn.ConnectError
	var parse *pgconn.ParseConfigError
	var network net.Error
	return errors.As(err, &pg) || errors.As(err, new(*pgproto3.ExceededMaxBodyLenErr)) || errors.As(err, &connect) || errors.As(err, &parse) || errors.As(err, &network) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, ErrNoSchema) || errors.Is(err, ErrOldSchema) || errors.Is(err, ErrNewSchema)
}

// shown returns a text of the database for people: as it stands on one line, and cut to at most so many bytes.
func shown(s string, most int) string {
	return plain.Clip(plain.Line(strings.Clone(plain.Clip(s, most))), most) // the rest is let go
}
