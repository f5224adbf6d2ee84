package journal_test

import (
	"fmt"
	"log"
	"os"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/journal"
)

// A session's journal is created, appended to, and read back. A process that goes
// on later opens it from what it has read.
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
	at, err := w.Append([]byte(`"turn":1`), []byte(`"turn":2`)) // durable when err is nil
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
	w, err = journal.Open(dir, saved.Session, saved, journal.Position{})
	if err != nil {
		log.Fatal(err)
	}
	defer w.Close()
	if _, err := w.Append([]byte(`"turn":3`)); err != nil {
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
	// journal-2-1.jsonl: {"seq":1,"epoch":1,"synced":109,"turn":1,"crc":"0c36c8d3"}
	// journal-2-1.jsonl: {"seq":2,"epoch":1,"synced":109,"turn":2,"crc":"f12d4656"}
	// journal-2-1.jsonl: {"seq":3,"epoch":2,"synced":249,"turn":3,"crc":"c286b084"}
}

// A stream counts as far as a record of the journal says, which names its Tail.
func ExampleStream() {
	folder, err := os.MkdirTemp("", "stream")
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
	defer w.Close()
	s := journal.NewStream(dir, "messages", "auth-20260214-1", w.Epoch(), journal.Tail{})
	defer s.Close()
	tail, err := s.Append(w.Last().Seq+1, [][]byte{[]byte(`"role":"user"`), []byte(`"role":"assistant"`)})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := w.Append(fmt.Appendf(nil, `"messages":{"file":%q,"bytes":%d,"count":%d}`, tail.File, tail.Bytes, tail.Count)); err != nil {
		s.GiveUp()
		log.Fatal(err)
	}
	s.Accept()

	for e, err := range journal.ReadStream(dir, "messages", tail) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%d: %s", e.N, e.Line)
	}
	// Output:
	// 1: {"seq":1,"epoch":1,"synced":0,"n":1,"role":"user","crc":"e6009b4a"}
	// 2: {"seq":1,"epoch":1,"synced":0,"n":2,"role":"assistant","crc":"6cdc75cb"}
}
