package main

import "fmt"

// memory measures a process with 1,000 sessions whose database is down, beside one without a fleet.
func (b *bench) memory() error {
	server := b.start()
	url := server.Create("memory")
	f, err := open(url, "maker of the tables")
	if err != nil {
		return err
	}
	f.Close()
	server.Kill()
	sides := []string{"", url}
	var all [2]*process
	for i, url := range sides {
		if all[i], err = b.launch(orders{Host: fmt.Sprintf("memory-%d", i), URL: url, Sessions: b.size.sessions}); err != nil {
			return err
		}
		if _, err := all[i].hear(); err != nil {
			return err
		}
	}
	fmt.Fprintf(&b.page, memoryText, b.size.sessions)
	done := 0
	for _, n := range []int{0, b.size.backlog / 3, b.size.backlog} {
		var m [2]reply
		for i, p := range all {
			if _, err := p.do(command{Do: "tasks", N: n - done}); err != nil {
				return err
			}
			if m[i], err = p.do(command{Do: "memory"}); err != nil {
				return err
			}
		}
		done = n
		const mib = 1 << 20
		fmt.Fprintf(&b.page, "| %d tasks, %.0f KiB of messages | %.1f MiB | %.1f MiB | %.1f MiB | %.0f MiB | %.0f MiB | %d | %d |\n", n, float64(n)*(question+answer)/1024,
			float64(m[0].Heap)/mib, float64(m[1].Heap)/mib, float64(m[1].Heap-m[0].Heap)/mib, float64(m[0].RSS)/mib, float64(m[1].RSS)/mib, m[0].Goroutines, m[1].Goroutines)
	}
	for _, p := range all {
		p.end()
	}
	return nil
}

// do has a runner do something.
func (p *process) do(c command) (reply, error) {
	if err := p.say(c); err != nil {
		return reply{}, err
	}
	return p.hear()
}
