package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/lopen-dev/lopen/bench/workload"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// histories writes transcripts as Claude Code does: four files of so many MiB together, with
// prompts, calls of tools, and their answers of 100 bytes to 32 KiB, as they are in practice.
func histories(dir string, mib int) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for i := range 4 {
		if err := transcript(filepath.Join(dir, fmt.Sprintf("%08d-0000.jsonl", i)), int64(mib)<<20/4, 100, 300, 1<<10, 4<<10, 32<<10, 200); err != nil {
			return err
		}
	}
	return nil
}

// smallHistories writes so many transcripts of 5 to 50 KB, in 20 folders.
func smallHistories(dir string, n int) error {
	for i := range n {
		in := filepath.Join(dir, fmt.Sprintf("-work-project%d", i%20))
		if err := os.MkdirAll(in, 0o700); err != nil {
			return err
		}
		if err := transcript(filepath.Join(in, fmt.Sprintf("%08d-0000.jsonl", i)), 4<<10+int64(i*7919%(45<<10)), 100, 300, 1<<10, 200); err != nil {
			return err
		}
	}
	return nil
}

// transcript writes one of a size, with answers of these sizes in turn.
func transcript(path string, size int64, sizes ...int) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	var written int64
	for i := 0; written < size && err == nil; i++ {
		var text []byte
		if text, err = strictjson.Marshal(workload.Text(sizes[i%len(sizes)], i%97)); err != nil {
			break
		}
		var n int
		n, err = fmt.Fprintf(w, `{"parentUuid":"m%d","isSidechain":false,"type":"assistant","uuid":"m%d","requestId":"req%d","timestamp":"2026-02-14T09:00:00.000Z","cwd":"/work/project","sessionId":"s","version":"2.1.197",`+
			`"message":{"id":"msg%d","role":"assistant","model":"m","content":[{"type":"text","text":%s},{"type":"tool_use","id":"t%d","name":"Bash","input":{"command":"go test ./..."}}],"usage":{"input_tokens":10,"output_tokens":20}}}`+"\n"+
			`{"parentUuid":"m%d","type":"user","uuid":"m%d","timestamp":"2026-02-14T09:00:01.000Z","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t%d","content":%s}]}}`+"\n",
			2*i-1, 2*i, i, i, text, i, 2*i, 2*i+1, i, text)
		written += int64(n)
	}
	return errors.Join(err, w.Flush(), f.Close())
}
