package fleet_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lopen-dev/lopen/lifecycle/fleet"
)

// kept opens a Fleet with a connection string and returns what is kept of that.
func kept(t require.TestingT, conn string) (url string, left []string) {
	f, err := fleet.Open(fleet.Options{URL: conn})
	require.NoError(t, err, conn)
	defer f.Close()
	return f.Kept()
}

// TestPasswordInURL takes the passwords out of what a person gives as a URL: what is kept leads to the
// same database and has none.
func TestPasswordInURL(t *testing.T) {
	t.Parallel()
	for _, conn := range []string{
		"postgres://ci:Secret9@db/lopen?sslmode=disable",
		"postgresql://ci:Secret9@db:5433/lopen?sslmode=disable",
		"postgres://ci:Secret9@db1:5432,db2:5433/lopen?sslmode=disable",
		"postgres://ci:Secret9@db1,[fe80::1]:7,db2/lopen?sslmode=disable",
		"postgres://ci:Secret9@[::1]:5432/lopen?sslmode=disable",
		"postgres://ci@db/lopen?password=Secret9&sslmode=disable",
		"postgres://ci@db/lopen?pass%77ord=Secret9&ssl%6Dode=disable",
		"postgres://ci@db1,db2/lopen?sslmode=disable&password=Secret9",
		"postgres://db/lopen?user=ci&password=Secret9&sslmode=disable",
		"postgres://ci:Sec%40ret9@db/lopen?sslmode=disable",
		"postgres://ci:Secret9%2F@db1,db2/lopen?sslmode=disable",
		"postgres://ci:Sec:ret9@%2Frun%2Fpg/lopen?sslmode=disable",
		"host=db user=ci password=Secret9 dbname=lopen sslmode=disable",
		"host=db user=ci password='Secret9 and more' dbname=lopen sslmode=disable",
		`password='Se\'cret9' host=db user=ci dbname=lopen sslmode=disable`,
		`password=Se\ cret9 host=db user=c\i dbname=lopen sslmode=disable`,
		"host=db user=ci password = Secret9 dbname=lopen sslmode=disable",
		"host=db\nuser='ci'password\t=\v'Secret9'dbname=lopen sslmode=disable",
	} {
		before, err := pgx.ParseConfig(conn)
		require.NoError(t, err, conn)
		require.NotEmpty(t, before.Password, conn)
		clean, left := kept(t, conn)
		require.Equal(t, []string{"password"}, left, conn)
		require.NotContains(t, strings.ToLower(clean), "ret9", conn)
		requireSameDatabase(t, before, clean, conn)
	}
	for _, conn := range []string{
		"postgres://ci@db/lopen?sslpassword=Secret9",
		"postgres://ci@db/lopen?ss%6Cpassword=Secret9&sslmode=require",
		"host=db user=ci sslpassword='Secret9' dbname=lopen",
	} {
		clean, left := kept(t, conn)
		require.Equal(t, []string{"sslpassword"}, left, conn)
		require.NotContains(t, clean, "Secret9", conn)
	}
	for _, conn := range []string{"postgres://ci@db/lopen?sslmode=disable", "host=db user=ci sslmode=disable", "postgres://ci@db1,db2:3/lopen?sslmode=disable&passfile=/x"} {
		before, err := pgx.ParseConfig(conn)
		require.NoError(t, err, conn)
		clean, left := kept(t, conn)
		require.Empty(t, left, conn)
		requireSameDatabase(t, before, clean, conn)
	}
}

func requireSameDatabase(t require.TestingT, before *pgx.ConnConfig, clean, conn string) {
	after, err := pgx.ParseConfig(clean)
	require.NoError(t, err, "%s became %s", conn, clean)
	require.Empty(t, after.Password, clean)
	require.Equal(t, []any{before.Host, before.Port, before.Database, before.User}, []any{after.Host, after.Port, after.Database, after.User}, "%s became %s", conn, clean)
	require.Len(t, after.Fallbacks, len(before.Fallbacks), "%s became %s", conn, clean)
	for i := range before.Fallbacks {
		require.Equal(t, before.Fallbacks[i].Host, after.Fallbacks[i].Host, clean)
		require.Equal(t, before.Fallbacks[i].Port, after.Fallbacks[i].Port, clean)
	}
}

// TestAnyName keeps names of any characters, and any password out of what is kept and of errors.
func TestAnyName(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[ -~äö\t\n]{1,12}`)
		name, database, secret := text.Draw(t, "user"), text.Draw(t, "database"), "§"+text.Draw(t, "password")+"§"
		quoted := strings.NewReplacer(`\`, `\\`, `'`, `\'`)
		conn := fmt.Sprintf(`host=/run user='%s' password='%s' dbname = '%s'`, quoted.Replace(name), quoted.Replace(secret), quoted.Replace(database))
		before, err := pgx.ParseConfig(conn)
		require.NoError(t, err, conn)
		require.Equal(t, secret, before.Password)
		clean, _ := kept(t, conn)
		require.NotContains(t, clean, "§")
		requireSameDatabase(t, before, clean, conn)
		for cut := range conn { // what is cut off is mostly an error
			if _, err := fleet.Open(fleet.Options{URL: conn[:cut] + " port=none"}); err != nil {
				require.NotContains(t, err.Error(), "§")
			}
		}
	})
}

// No error has a password, however the string that has it is misspelt.
func TestNoPasswordInErrors(t *testing.T) {
	t.Parallel()
	for _, conn := range []string{
		"postgres://ci:Sec/ret@db/lopen",
		"postgres://ci:Sec/ret@db:port/lopen?sslmode=disable",
		"postgres://ci:12/ret@db/lopen",
		"postgres://ci:Sec?ret@db/lopen?sslmode=odd",
		"postgres://ci:Secret",
		"postgres://ci:Sec%zzret@db/lopen",
		"postgres://ci@db/lopen?password=Sec&ret=x",
		"postgres://ci@db/lopen?password=Sec=ret",
		"postgres://ci@db/lopen?password=Sec%ret",
		"postgres://ci@db/lopen?passwort&Secret",
		"postgres://ci:Secret@db:x/lopen",
		"postgres://ci:Secret@db/lopen?sslmode=odd",
		"postgres://ci:Secret@db/lopen?port=1,2,3",
		"postgres://ci:Secret@db/lopen?sslrootcert=/none",
		"postgres://ci@db/lopen?sslpassword=Secret&sslmode=odd",
		"host=db password='Sec ret",
		"host=db password=Sec ret",
		"host=db password=Sec ret=x",
		`host=db password='Sec\'ret' sslmode=odd`,
		"host=db password = Secret sslmode=odd",
		"host=db port=x password='Secret'",
	} {
		_, err := fleet.Open(fleet.Options{URL: conn})
		require.Error(t, err, conn)
		require.NotContains(t, fleet.Explain(err), "Sec", conn)
		require.NotContains(t, fleet.Explain(err), "ret", conn)
	}
}

// What lopen does not know is not kept: it could be a secret.
func TestUnknownParameters(t *testing.T) {
	t.Parallel()
	for _, conn := range []string{"postgres://ci@db/lopen?oauth_client_secret=x", "host=db scram_client_key=x", "postgres://ci@db/lopen?pool_max_conns=4"} {
		_, err := fleet.Open(fleet.Options{URL: conn})
		require.ErrorContains(t, err, "is not known", conn)
	}
}

// A value that may be anything is not kept where it looks like a password, and no error has it.
func TestNoPasswordInOptions(t *testing.T) {
	t.Parallel()
	for _, conn := range []string{"postgres://ci@db/lopen?application_name=password%3Dhunter2", "host=db options='-c my.Secret=hunter2'"} {
		_, err := fleet.Open(fleet.Options{URL: conn})
		require.ErrorContains(t, err, "looks as if it had a password", conn)
		require.NotContains(t, err.Error(), "hunter2")
	}
	f, err := fleet.Open(fleet.Options{URL: "host=db application_name=ci options='-c statement_timeout=5s'"})
	require.NoError(t, err)
	f.Close()
}

// Whoever does not say how the way to another machine is encrypted gets a server that proves who it is;
// with less the way is not ok, wherever that was said.
func TestEncryption(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	root, services := filepath.Join(dir, "root.crt"), filepath.Join(dir, "services")
	require.NoError(t, os.WriteFile(root, certificate(t), 0o600))
	require.NoError(t, os.WriteFile(services, []byte("[weak]\nhost=db\nsslmode=require\npassword=x\n[silent]\nhost=db\n[near]\nhost=localhost\n"), 0o600))
	const checked, unnamed, unchecked, offered, open, near = "the server's certificate is checked", "the name in the server's certificate is not checked", "the server's certificate is not checked", "TLS if the server offers it", "none: whoever is in between", "on this machine"
	for conn, want := range map[string]string{
		"postgres://ci@db/lopen":                                     checked,
		"postgres://ci@db1,db2:7/lopen":                              checked,
		"postgres://ci@localhost,db/lopen":                           checked,
		"postgres://ci@10.0.0.1/lopen":                               checked,
		"postgres://ci@[fe80::1]/lopen":                              checked,
		"host=/run,db":                                               checked,
		"postgres://ci@db/lopen?sslnegotiation=direct":               checked,
		"postgres://ci@db/lopen?sslrootcert=" + root:                 checked,
		"postgres://ci@db/lopen?sslmode=verify-full":                 checked,
		"postgres://ci@db/lopen?sslmode=verify-ca":                   unnamed,
		"postgres://ci@db/lopen?sslmode=require&sslrootcert=" + root: unnamed,
		"postgres://ci@db/lopen?sslmode=require":                     unchecked,
		"postgres://ci@db/lopen?ssl=true":                            unchecked,
		"postgres://ci@db/lopen?sslmode=prefer":                      offered,
		"postgres://ci@db/lopen?sslmode=allow":                       offered,
		"postgres://ci@db/lopen?sslmode=disable":                     open,
		"postgres://ci@127.0.0.1,db/lopen?sslmode=disable":           open,
		"postgres://ci@127.0.0.1/lopen":                              near,
		"postgres://ci@LOCALHOST,[::1]/lopen":                        near,
		"postgres:///lopen?host=/run/pg":                             near,
		"postgres://ci@127.0.0.1/lopen?sslmode=disable":              near,
		"service=weak servicefile=" + services:                       unchecked,
		"service=silent servicefile=" + services:                     checked,
		"service=near servicefile=" + services:                       near,
		"service=weak sslmode=verify-full servicefile=" + services:   checked,
	} {
		for _, conn := range []string{conn, first(kept(t, conn))} { // also when it was remembered
			f, err := fleet.Open(fleet.Options{URL: conn})
			require.NoError(t, err, conn)
			found, ok := f.Encryption()
			f.Close()
			require.Contains(t, found, want, conn)
			require.Equal(t, want == checked || want == near, ok, conn)
		}
	}
	require.True(t, fleet.HasPassword("service=weak servicefile="+services))
	require.False(t, fleet.HasPassword("service=silent servicefile="+services))
}

// certificate makes one that is signed by itself.
func certificate(t *testing.T) []byte {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	data, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: data})
}

func first[T, U any](v T, _ U) T { return v }

// What a person says in the environment is said, and remembered: it is as good as in the URL, and what it
// says later changes nothing. The test is not parallel, since it changes the environment.
func TestTypedInTheEnvironment(t *testing.T) { //nolint:paralleltest // see above
	t.Setenv("PGSSLMODE", "require")
	t.Setenv("PGUSER", "ci")
	weak, _ := kept(t, "postgres://db/lopen")
	require.Equal(t, "dbname='lopen' host='db' sslmode='require' user='ci'", weak)
	t.Setenv("PGSSLMODE", "")
	t.Setenv("PGPASSFILE", "x")
	full, _ := kept(t, "postgres://db/lopen")
	wd, err := os.Getwd()
	require.NoError(t, err)
	require.Equal(t, "dbname='lopen' host='db' passfile='"+filepath.Join(wd, "x")+"' sslmode='verify-full' user='ci'", full)
	t.Setenv("PGSSLMODE", "disable")
	f, err := fleet.Open(fleet.Options{URL: full})
	require.NoError(t, err)
	defer f.Close()
	_, ok := f.Encryption()
	require.True(t, ok)
}

// A password comes from the URL, once; else from a service file; else from what Options have; else from a file.
func TestWhereThePasswordComesFrom(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	passfile, services := filepath.Join(dir, "pgpass"), filepath.Join(dir, "services")
	require.NoError(t, os.WriteFile(passfile, []byte("*:*:*:*:file\n"), 0o600))
	require.NoError(t, os.WriteFile(services, []byte("[s]\nhost=/run\npassword=service\n"), 0o600))
	for want, o := range map[string]fleet.Options{
		"url":     {URL: "service=s password=url servicefile=" + services, Password: "options"},
		"service": {URL: "service=s servicefile=" + services, Password: "options"},
		"options": {URL: "host=/run passfile=" + passfile, Password: "options"},
		"file":    {URL: "host=/run passfile=" + passfile},
	} {
		f, err := fleet.Open(o)
		require.NoError(t, err)
		require.Equal(t, want, f.Password())
		f.Close()
	}
}
