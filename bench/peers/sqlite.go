package main

import (
	"database/sql"
	"errors"
	"path/filepath"

	_ "modernc.org/sqlite" // the driver

	"github.com/lopen-dev/lopen/bench/workload"
)

// sqlite keeps one row a task, an iteration and a message, in write-ahead mode.
type sqlite struct {
	db                          *sql.DB
	task, addIteration, message *sql.Stmt
}

// openSQLite opens with one of SQLite's levels of synchronous: FULL syncs the log at
// each commit, NORMAL only at checkpoints.
func openSQLite(synchronous string) func(string, int) (Peer, error) {
	return func(dir string, n int) (Peer, error) {
		db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "state.db")+"?_pragma=journal_mode(WAL)&_pragma=synchronous("+synchronous+")")
		if err != nil {
			return nil, err
		}
		db.SetMaxOpenConns(1)
		s := &sqlite{db: db}
		if err := s.fill(n); err != nil {
			return nil, errors.Join(err, db.Close())
		}
		return s, nil
	}
}

func (s *sqlite) fill(n int) (err error) {
	_, err = s.db.Exec(`
		CREATE TABLE tasks (n INTEGER PRIMARY KEY, id TEXT, parent TEXT, name TEXT, state TEXT, attempts INTEGER);
		CREATE TABLE iterations (n INTEGER PRIMARY KEY, input INTEGER, output INTEGER, window INTEGER, ms INTEGER);
		CREATE TABLE messages (n INTEGER PRIMARY KEY, text TEXT)`)
	if err != nil {
		return err
	}
	tx, err := s.db.Begin()
	if err != nil {
		return err
	}
	insert, err := tx.Prepare("INSERT INTO tasks VALUES (?, ?, ?, ?, ?, 0)")
	for i := 0; err == nil && i < n; i++ {
		t := taskOf(i, 0)
		_, err = insert.Exec(i, t.ID, t.Parent, t.Name, t.State)
	}
	if err != nil {
		return errors.Join(err, tx.Rollback())
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	for stmt, text := range map[**sql.Stmt]string{
		&s.task:         "UPDATE tasks SET attempts = ? WHERE n = ?",
		&s.addIteration: "INSERT INTO iterations (input, output, window, ms) VALUES (?, ?, ?, ?)",
		&s.message:      "INSERT INTO messages (text) VALUES (?)",
	} {
		if *stmt, err = s.db.Prepare(text); err != nil {
			return err
		}
	}
	return nil
}

func (s *sqlite) Save(step workload.Step) error {
	if !step.Iteration {
		_, err := s.task.Exec(step.Attempts, step.Task)
		return err
	}
	tx, err := s.db.Begin()
	if err != nil {
		return err
	}
	_, err = tx.Stmt(s.task).Exec(step.Attempts, step.Task)
	if err == nil {
		i := oneIteration
		_, err = tx.Stmt(s.addIteration).Exec(i.InputTokens, i.OutputTokens, i.ContextWindow, i.DurationMs)
	}
	if err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

func (s *sqlite) Append(text string) error {
	_, err := s.message.Exec(text)
	return err
}

func (s *sqlite) Sync() error  { return nil }
func (s *sqlite) Close() error { return s.db.Close() }
