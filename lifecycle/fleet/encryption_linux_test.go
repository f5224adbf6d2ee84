package fleet_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/fleet"
	"github.com/lopen-dev/lopen/lifecycle/fleet/pgtest"
)

// A server whose certificate nobody knows is not used unless that was said, and then doctor says it. On Linux
// 0.0.0.0 leads to this machine, and does not look like it.
func TestUnknownCertificate(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t, pgtest.Options{TLS: true})
	u, err := url.Parse(s.Create("fleet"))
	require.NoError(t, err)
	root := u.Query().Get("sslrootcert")
	u.Host = strings.Replace(u.Host, "127.0.0.1", "0.0.0.0", 1)
	with := func(query url.Values) *fleet.Fleet {
		u.RawQuery = query.Encode()
		return open(t, "a", u.String())
	}
	_, err = with(nil).Schema(t.Context())
	require.ErrorContains(t, err, "failed to verify certificate")
	_, err = with(url.Values{"sslmode": {"verify-ca"}}).Schema(t.Context())
	require.ErrorContains(t, err, "certificate signed by unknown authority")
	require.Contains(t, fleet.Explain(err), "sslrootcert=FILE")
	_, err = with(url.Values{"sslrootcert": {root}}).Schema(t.Context())
	require.ErrorContains(t, err, "certificate is valid for 127.0.0.1, not 0.0.0.0")
	require.Contains(t, fleet.Explain(err), "name the host as the certificate does")
	for _, query := range []url.Values{{"sslmode": {"require"}}, {"sslmode": {"verify-ca"}, "sslrootcert": {root}}} {
		f := with(query)
		_, err = f.Schema(t.Context())
		require.NoError(t, err)
		require.False(t, check(t, f, "encryption").OK, "%v", query)
	}
	plain, err := url.Parse(pgtest.Database(t))
	require.NoError(t, err)
	plain.Host, plain.RawQuery = strings.Replace(plain.Host, "127.0.0.1", "0.0.0.0", 1), ""
	_, err = open(t, "a", plain.String()).Schema(t.Context())
	require.Contains(t, fleet.Explain(err), "sslmode=disable in the URL of lopen fleet join sends everything open")
}
