// Package pgtest starts real PostgreSQL servers and breaks them: it kills, stops, pauses and
// restores them, and a [Proxy] breaks what is between them and a client. A [Pooler] shares few
// connections between many. It is for tests.
//
// # Servers
//
// [Database] is a fresh database on a server that all tests of a test binary share. Its first
// use starts that server. [Start] starts a [Server] for one test, which may kill it;
// [Server.Standby] starts a streaming replica of it.
//
// The programs are those of PATH, else the newest in /usr/lib/postgresql, else those in
// /usr/local/pgsql. Where there are none, and on systems other than Linux, [Need] skips the
// test. A test binary calls [Main] in its TestMain.
//
// A server listens on 127.0.0.1 and on a Unix socket, takes passwords by SCRAM only, and has
// two roles: the superuser [Superuser] and [Owner], which owns the databases and has no other
// rights. PostgreSQL refuses to run as root: for root it runs as the user postgres, else as
// nobody. Servers run with fsync off, since only processes are killed, never the machine.
//
// # What is left
//
// Nothing, however the test binary ends. Before the first server starts, the binary runs itself
// once more as a reaper, in a session of its own. The reaper reads a pipe of which the test binary
// alone has the other end. Any end of the binary, kill -9 included, closes it. Then the reaper kills
// every process whose command line has the name of one of the servers, frees their shared memory
// and removes their folders. Each server has its name as cluster_name, so that PostgreSQL shows it
// in the command lines of all its processes, orphans included.
//
// A parent-death signal was rejected: it follows the thread that forked, and Go starts and ends
// threads as it likes. Only a kill -9 of the reaper as well leaves something.
//
// # Concurrency
//
// All functions and methods may be called from any goroutine. Methods of a [Server] exclude each
// other, except URL, Socket and Addr, which do not wait. A method that fails calls
// [testing.TB.FailNow], which ends the calling goroutine only: in another goroutine than the test's
// the test fails, but continues.
package pgtest
