package fleet

import (
	"net"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// ends are the hosts of a configuration, in the order in which they are tried.
func ends(cfg *pgx.ConnConfig) []*pgconn.FallbackConfig {
	return append([]*pgconn.FallbackConfig{{Host: cfg.Host, Port: cfg.Port, TLSConfig: cfg.TLSConfig}}, cfg.Fallbacks...)
}

// local reports whether what is sent to a host does not leave this machine.
func local(host string) bool {
	network, _ := pgconn.NetworkAddress(host, 0)
	return network == "unix" || strings.EqualFold(host, "localhost") || net.ParseIP(host).IsLoopback()
}

// near reports whether all hosts are local.
func near(cfg *pgx.ConnConfig) bool {
	return !slices.ContainsFunc(ends(cfg), func(e *pgconn.FallbackConfig) bool { return !local(e.Host) })
}

// What keeps the way to a database from others, from the best to the worst.
const (
	wayLocal = iota
	wayChecked
	wayUnnamed
	wayUnchecked
	wayOffered
	wayOpen
)

// ways are what is said of them.
var ways = []string{
	wayLocal:     "not needed: the database is on this machine",
	wayChecked:   "TLS, and the server's certificate is checked",
	wayUnnamed:   "TLS, and the name in the server's certificate is not checked: whoever has one of the same authority can pose as the database",
	wayUnchecked: "TLS, and the server's certificate is not checked: whoever is in between can pose as the database",
	wayOffered:   "TLS if the server offers it: whoever is in between can pose as one that does not, and read and change all that is sent",
	wayOpen:      "none: whoever is in between can read and change all that is sent",
}

// Encryption says what keeps the way to the database from others, as it is configured: of several hosts for the one
// that is kept worst. ok is false if others on the network can pose as the database.
func (f *Fleet) Encryption() (found string, ok bool) {
	worst, all := wayLocal, ends(f.pool.Config().ConnConfig)
	offered := slices.ContainsFunc(all, func(e *pgconn.FallbackConfig) bool { return e.TLSConfig != nil })
	for _, e := range all {
		switch t := e.TLSConfig; {
		case local(e.Host):
		case t == nil && offered:
			worst = max(worst, wayOffered)
		case t == nil:
			worst = max(worst, wayOpen)
		case t.InsecureSkipVerify && t.VerifyPeerCertificate == nil:
			worst = max(worst, wayUnchecked)
		case t.InsecureSkipVerify:
			worst = max(worst, wayUnnamed)
		default:
			worst = max(worst, wayChecked)
		}
	}
	return ways[worst], worst <= wayChecked
}

// MendEncryption says how the way to the database is kept from others.
const MendEncryption = "lopen fleet join with sslmode=verify-full in the URL, and sslrootcert=FILE for an authority of your own"
