package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lopen-dev/lopen/lifecycle/fleet/pgtest"
)

// runners is how many processes hold the sessions.
const runners = 3

// address is that of the server of a URL.
func address(of string) string {
	u, err := url.Parse(of)
	if err != nil {
		panic(err) // no URL of pgtest
	}
	return u.Host
}

// A process is a runner.
type process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// launch starts a runner. It is ready once it has answered.
func (b *bench) launch(o orders) (p *process, err error) {
	if o.Dir, err = b.folder(o.Host); err != nil {
		return nil, err
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	p = &process{cmd: exec.Command(exe)}
	p.cmd.Env = append(os.Environ(), ordersVar+"="+string(text))
	p.cmd.Stderr = os.Stderr
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	b.Cleanup(p.end)
	return p, nil
}

// end ends a runner.
func (p *process) end() {
	_ = p.cmd.Process.Kill() // what it has on the disk is removed
	_ = p.cmd.Wait()
}

// say sends a command.
func (p *process) say(c command) error {
	line, err := json.Marshal(c)
	if err == nil {
		_, err = p.in.Write(append(line, '\n'))
	}
	return err
}

// hear reads the answer.
func (p *process) hear() (a reply, err error) {
	line, err := p.out.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &a)
	}
	if err == nil && a.Err != "" {
		err = errors.New(a.Err)
	}
	return a, err
}

// A group is runners on one server, behind a proxy that counts.
type group struct {
	server *pgtest.Server
	proxy  *pgtest.Proxy
	url    string
	row    bool
	all    []*process
}

// group starts a server and its runners.
func (b *bench) group(row bool) (*group, error) {
	g := &group{server: b.start(), row: row}
	g.url = g.server.Create("load")
	g.proxy = pgtest.NewProxy(b, g.server.Addr())
	if row {
		if err := g.query(func(ctx context.Context, c *pgx.Conn) error {
			_, err := c.Exec(ctx, "SET ROLE "+pgtest.Owner+";"+rowsSchema)
			return err
		}); err != nil {
			return nil, err
		}
	} else {
		f, err := open(g.url, "maker of the tables")
		if err != nil {
			return nil, err
		}
		f.Close()
	}
	for i := range runners {
		p, err := b.launch(orders{Host: fmt.Sprintf("runner-%v-%d", row, i), URL: g.proxy.URL(g.url), Row: row, Sessions: b.size.sessions / runners})
		if err != nil {
			return nil, err
		}
		g.all = append(g.all, p)
	}
	_, err := g.hear()
	return g, err
}

// do has all runners do something at once.
func (g *group) do(c command) (reply, error) {
	for _, p := range g.all {
		if err := p.say(c); err != nil {
			return reply{}, err
		}
	}
	return g.hear()
}

func (g *group) hear() (sum reply, err error) {
	for _, p := range g.all {
		a, err := p.hear()
		if err != nil {
			return sum, err
		}
		sum.Lags = append(sum.Lags, a.Lags...)
	}
	slices.Sort(sum.Lags)
	return sum, nil
}

// query gives fn a connection of the superuser's.
func (g *group) query(fn func(ctx context.Context, c *pgx.Conn) error) error {
	ctx := context.Background()
	c, err := pgx.Connect(ctx, pgtest.Admin(g.url))
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	return fn(ctx, c)
}

// A reading is what has gone through a server so far, or between two readings.
type reading struct {
	took, cpu      time.Duration // of the server
	wal, disk, up  int64         // bytes: written ahead, of the database, from clients
	records, bytes int64         // that the fleet has, and their bytes
	connections    int64         // the most
}

// read reads all but the times.
func (g *group) read() (r reading, err error) {
	sql := `SELECT pg_current_wal_insert_lsn() - '0/0', pg_database_size(current_database()), `
	if g.row {
		sql += `0, 0`
	} else {
		sql += `coalesce(sum(head_seq), 0)::bigint, coalesce(sum(bytes), 0)::bigint FROM lopen_data.sessions`
	}
	err = g.query(func(ctx context.Context, c *pgx.Conn) error {
		return c.QueryRow(ctx, sql).Scan(&r.wal, &r.disk, &r.records, &r.bytes)
	})
	r.up, _ = g.proxy.Bytes()
	return r, err
}

// during returns what goes through the server while fn runs.
func (g *group) during(fn func() error) (d reading, err error) {
	before, err := g.read()
	if err != nil {
		return d, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	var most int64
	watching.Go(func() { most = g.watch(ctx) })
	cpu, begun := g.server.CPU(), time.Now()
	err = fn()
	took, cpu := time.Since(begun), g.server.CPU()-cpu
	cancel()
	watching.Wait()
	after, unread := g.read()
	return reading{took: took, cpu: cpu, wal: after.wal - before.wal, disk: after.disk - before.disk, up: after.up - before.up,
		records: after.records - before.records, bytes: after.bytes - before.bytes, connections: most}, errors.Join(err, unread)
}

// watch returns the largest number of clients' connections that it sees. It is cheap, since it is measured as well.
func (g *group) watch(ctx context.Context) (most int64) {
	_ = g.query(func(_ context.Context, c *pgx.Conn) error { // without it there is no number
		for ; ctx.Err() == nil; time.Sleep(time.Second / 2) {
			var n int64
			if err := c.QueryRow(context.Background(), `SELECT count(*) FROM pg_stat_activity WHERE usename = $1 AND datname = current_database()`, pgtest.Owner).Scan(&n); err != nil {
				return err
			}
			most = max(most, n)
		}
		return nil
	})
	return most
}
