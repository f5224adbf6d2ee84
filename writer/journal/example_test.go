package journal_test

import (
	"fmt"
	"log"
	"os"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/journal"
)

// A session's journal is created, appended to, and read back. A later process opens it
// with the log that it has read.
func Example() {
	folder, err := os.MkdirTemp("", "journal")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	dir, err := writer.OpenFS(folder)
	if err != nil {
		log.Fatal(err)
	}
	defer dir.Close()

	w, err := journal.Create(dir, "auth-20260214-1")
	if err != nil {
		log.Fatal(err)
	}
	at, err := w.Append(journal.Record{Body: []byte(`"turn":1`)}, journal.Record{Body: []byte(`"said":"hello"`), Entry: true}) // durable when err is nil
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("durable up to record", at.Seq)
	if err := w.Close(); err != nil {
		log.Fatal(err)
	}

	saved, err := journal.Read(dir, 0, true)
	if err != nil {
		log.Fatal(err)
	}
	w, err = journal.Open(dir, saved.Session, saved)
	if err != nil {
		log.Fatal(err)
	}
	defer w.Close()
	if _, err := w.Append(journal.Record{Body: []byte(`"turn":3`)}); err != nil {
		log.Fatal(err)
	}

	saved, err = journal.Read(dir, 0, true)
	if err != nil {
		log.Fatal(err)
	}
	err = saved.Lines(saved.Records, func(r *journal.Ref, line []byte) error {
		_, err := fmt.Printf("%s: %s", r.Segment(), line)
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// durable up to record 2
	// journal-2-1.jsonl: {"seq":1,"epoch":1,"synced":109,"prior":0,"turn":1,"crc":"01b34766"}
	// journal-2-1.jsonl: {"seq":2,"epoch":1,"synced":109,"state":1,"said":"hello","crc":"30264edd"}
	// journal-2-1.jsonl: {"seq":3,"epoch":2,"synced":289,"prior":1,"turn":3,"crc":"68a2cc22"}
}
