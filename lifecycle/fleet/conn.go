package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/jackc/pgservicefile"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// A conn is what a connection string says, by the keywords of libpq. The driver and the disk get it as
// String writes it, without secrets: an error of the driver names what it was given.
type conn map[string]string

// secrets are the keywords whose values are used once and never kept.
var secrets = []string{"password", "sslpassword"}

// keywords are the others that a connection string may have, with the variables that stand in for them and
// that are remembered as well. What is not here is refused: it is kept, and might be a secret.
var keywords = map[string]string{
	"host": "PGHOST", "port": "PGPORT", "dbname": "PGDATABASE", "user": "PGUSER", "service": "PGSERVICE", "servicefile": "PGSERVICEFILE", "passfile": "PGPASSFILE",
	"sslmode": "PGSSLMODE", "sslrootcert": "PGSSLROOTCERT", "sslcert": "PGSSLCERT", "sslkey": "PGSSLKEY", "sslcertmode": "PGSSLCERTMODE", "sslnegotiation": "PGSSLNEGOTIATION",
	"sslsni": "PGSSLSNI", "channel_binding": "PGCHANNELBINDING", "require_auth": "PGREQUIREAUTH", "target_session_attrs": "PGTARGETSESSIONATTRS",
	"application_name": "", "connect_timeout": "", "options": "", "krbsrvname": "", "krbspn": "", "min_protocol_version": "", "max_protocol_version": "",
}

// secretive matches the value of a keyword that may have anything, where somebody put a password into it.
var secretive = regexp.MustCompile(`(?i)passw|pwd|secret|token`)

// paths are the keywords that name a file.
var paths = []string{"passfile", "servicefile", "sslrootcert", "sslcert", "sslkey"}

// parseConn reads a URL of libpq, or key=value. No error has what may be part of a password.
func parseConn(text string) (conn, error) {
	read := readWords
	if rest, ok := cutScheme(text); ok {
		text, read = rest, readURL
	}
	c := conn{}
	err := read(text, func(key, value string) {
		switch {
		case key == "database":
			key = "dbname"
		case key == "ssl" && value == "true":
			key, value = "sslmode", "require"
		}
		c[key] = value
	})
	if err == nil && strings.ContainsFunc(c["port"], func(r rune) bool { return (r < '0' || r > '9') && r != ',' }) {
		err = errors.New("its port is no number: in a password / is %2F and @ is %40")
	}
	if err == nil {
		err = c.kept()
	}
	return c, err
}

// kept returns an error for what may not be kept: a parameter that is not known, and a value that looks like a password.
func (c conn) kept() error {
	for _, key := range []string{"application_name", "options"} {
		if secretive.MatchString(c[key]) {
			return fmt.Errorf("its %s looks as if it had a password, and would be kept: password= or PGPASSFILE is the place for one", key)
		}
	}
	for key := range c {
		if _, known := keywords[key]; known || slices.Contains(secrets, key) {
			continue
		}
		if c["password"] == "" && c["sslpassword"] == "" { // else it may be a piece of one
			return fmt.Errorf("the parameter %q is not known", key)
		}
		return errors.New("it has a parameter that is not known")
	}
	return nil
}

func cutScheme(text string) (rest string, ok bool) {
	for _, scheme := range []string{"postgres://", "postgresql://"} {
		if rest, ok = strings.CutPrefix(text, scheme); ok {
			return rest, true
		}
	}
	return "", false
}

// readURL reads USER:PASSWORD@HOST:PORT,HOST:PORT/DATABASE?KEY=VALUE&KEY=VALUE as libpq does.
func readURL(text string, set func(key, value string)) (err error) {
	put := func(key, raw string) {
		value, wrong := url.PathUnescape(raw)
		if wrong != nil {
			err = errors.New("it has a % that is no %XX: a % itself is %25")
		} else if value != "" {
			set(key, value)
		}
	}
	if i := strings.IndexAny(text, "@/"); i >= 0 && text[i] == '@' {
		user, password, _ := strings.Cut(text[:i], ":")
		put("user", user)
		put("password", password)
		text = text[i+1:]
	}
	if strings.Contains(text, "@") {
		return errors.New("it has an @ behind its host: in a password / is %2F, and elsewhere @ is %40")
	}
	text, query, _ := strings.Cut(text, "?")
	places, database, _ := strings.Cut(text, "/")
	var hosts, ports []string
	for place := range strings.SplitSeq(places, ",") {
		host, port, _ := strings.Cut(place, ":")
		if strings.HasPrefix(place, "[") { // the address has colons of its own
			host, port, _ = strings.Cut(place[1:], "]")
			port = strings.TrimPrefix(port, ":")
		}
		hosts, ports = append(hosts, host), append(ports, port)
	}
	put("host", strings.Join(hosts, ","))
	put("port", strings.Join(ports, ","))
	put("dbname", database)
	for pair := range strings.SplitSeq(query, "&") {
		key, value, ok := strings.Cut(pair, "=")
		if query != "" && (!ok || strings.Contains(value, "=")) {
			return errors.New("it has something behind its ? that is no KEY=VALUE: in a value & is %26 and = is %3D")
		}
		if name, wrong := url.PathUnescape(key); wrong == nil {
			put(name, value)
		}
	}
	return err
}

// readWords reads KEY=VALUE KEY='VALUE' as libpq does.
func readWords(text string, set func(key, value string)) error {
	const spaces = " \t\n\r\v\f"
	for text = strings.TrimLeft(text, spaces); text != ""; text = strings.TrimLeft(text, spaces) {
		key, rest, ok := strings.Cut(text, "=")
		if key = strings.TrimRight(key, spaces); !ok || key == "" || strings.ContainsAny(key, spaces) {
			return errors.New("it has a word that is no KEY=VALUE: a value with spaces is KEY='VALUE'")
		}
		rest, quoted := strings.CutPrefix(strings.TrimLeft(rest, spaces), "'")
		var value strings.Builder
		i, ended := 0, false
		for ; i < len(rest) && !ended; i++ {
			switch c := rest[i]; {
			case quoted && c == '\'', !quoted && strings.IndexByte(spaces, c) >= 0:
				ended = true
				continue
			case c == '\\' && i+1 < len(rest):
				i++
			}
			value.WriteByte(rest[i])
		}
		if quoted && !ended {
			return errors.New("it has a value with a ' in front and none at its end")
		}
		set(key, value.String())
		text = rest[i:]
	}
	return nil
}

// String writes KEY='VALUE', sorted.
func (c conn) String() string {
	words := make([]string, 0, len(c))
	for _, key := range slices.Sorted(maps.Keys(c)) {
		words = append(words, key+"='"+strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(c[key])+"'")
	}
	return strings.Join(words, " ")
}

// service returns what the service file says of the service that a connection string, or PGSERVICE,
// names. It has nothing if that cannot be read, which the driver reports.
func (c conn) service() map[string]string {
	name, path := cmp.Or(c["service"], os.Getenv("PGSERVICE")), cmp.Or(c["servicefile"], os.Getenv("PGSERVICEFILE"))
	if name == "" {
		return nil
	}
	if path == "" { // where the driver looks
		home, _ := os.UserHomeDir() // without one nothing is found
		if runtime.GOOS == "windows" {
			home = filepath.Join(os.Getenv("APPDATA"), "postgresql")
		}
		path = filepath.Join(home, ".pg_service.conf")
	}
	file, err := pgservicefile.ReadServicefile(path)
	if err != nil {
		return nil
	}
	service, err := file.GetService(name)
	if err != nil {
		return nil
	}
	return service.Settings
}

// config returns what the driver needs, and what the connection string says without its secrets. Where nobody said
// how the way to another machine is encrypted, the server has to prove who it is.
func (o *Options) config() (cfg *pgx.ConnConfig, c conn, err error) {
	if c, err = parseConn(o.URL); err != nil {
		return nil, nil, fmt.Errorf("the connection string cannot be read: %w", err)
	}
	typed := map[string]string{}
	for _, key := range secrets {
		typed[key] = c[key]
		delete(c, key)
	}
	service := c.service()
	parse := func() (*pgx.ConnConfig, error) {
		return pgx.ParseConfigWithOptions(c.String(), pgx.ParseConfigOptions{ParseConfigOptions: pgconn.ParseConfigOptions{
			GetSSLPassword: func(context.Context) string { return cmp.Or(typed["sslpassword"], o.KeyPassword) },
		}})
	}
	cfg, err = parse()
	if err == nil && cmp.Or(c["sslmode"], service["sslmode"], os.Getenv("PGSSLMODE")) == "" && !near(cfg) {
		c["sslmode"] = "verify-full"
		cfg, err = parse()
	}
	if err != nil {
		return nil, nil, err
	}
	if service["password"] == "" && o.Password != "" {
		cfg.Password = o.Password
	}
	cfg.Password = cmp.Or(typed["password"], cfg.Password)
	return cfg, c, nil
}

// HasPassword reports whether the service file has the password of a fleet, whatever PGPASSWORD says.
// url is one that Kept returned.
func HasPassword(url string) bool {
	c, err := parseConn(url)
	return err == nil && c.service()["password"] != ""
}

// Kept returns a connection string that leads to the database of this Fleet whatever the environment says
// later, and the keywords of what the one of Options has and nobody keeps: passwords.
func (f *Fleet) Kept() (url string, left []string) {
	c, service, cfg := maps.Clone(f.conn), f.conn.service(), f.pool.Config().ConnConfig
	add := func(key, value string) {
		if c[key] == "" && service[key] == "" && value != "" {
			c[key] = value
		}
	}
	for key, variable := range keywords {
		add(key, os.Getenv(variable))
	}
	add("host", cfg.Host)
	add("user", cfg.User)
	for _, key := range paths {
		if path, err := filepath.Abs(c[key]); err == nil && c[key] != "" && (key != "sslrootcert" || c[key] != "system") {
			c[key] = path
		}
	}
	given, _ := parseConn(f.opts.URL) // Open has read it
	for _, key := range secrets {
		if given[key] != "" {
			left = append(left, key)
		}
	}
	return c.String(), left
}
