package main

import (
	"bufio"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"github.com/ncruces/go-sqlite3/driver"
)

// rows are the rows that a database of the scripts begins with.
const rows = 20

// database is for scripts: a program that has an SQLite database (WAL, synchronous=full). "serve FILE"
// makes one with rows and adds one for each line on stdin, with the number of committed rows as the
// answer. "add FILE" adds as many and closes it. "count FILE" prints how many there are.
func database() {
	if err := useDatabase(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func useDatabase(what, file string) error {
	path, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	db, err := driver.Open((&url.URL{Scheme: "file", OmitHost: true, Path: path,
		RawQuery: "_pragma=journal_mode(wal)&_pragma=synchronous(full)"}).String())
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	n := 0
	count := func() error { return db.QueryRow("SELECT count(*) FROM t").Scan(&n) }
	if what == "count" {
		err = count()
		fmt.Println(n)
		return err
	}
	if _, err := db.Exec("CREATE TABLE IF NOT EXISTS t (n integer)"); err != nil {
		return err
	}
	for range rows {
		if err := add(db); err != nil {
			return err
		}
	}
	if what == "add" {
		return nil
	}
	err = count()
	fmt.Println(n)
	for in := bufio.NewScanner(os.Stdin); err == nil && in.Scan(); {
		if err = add(db); err == nil {
			err = count()
		}
		fmt.Println(n)
	}
	return err
}

func add(db *sql.DB) error {
	_, err := db.Exec("INSERT INTO t VALUES (1)")
	return err
}
