package main

import (
	"bufio"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/writer"
)

// A Machine is where and with what a run was made.
type Machine struct {
	At         time.Time
	Quick      bool
	System     string
	CPU        string
	CPUs       int
	Kernel     string
	FileSystem string
	FUSE       bool
	Load       string // 1, 5 and 15 minutes, before the run
	LoadAfter  string
	Go         string
	Git        string
	Modules    map[string]string // version of each peer's module
}

func machine(dir string, quick bool) Machine {
	fsType, _, err := writer.FSType(dir)
	if err != nil || fsType == "" {
		fsType = "unknown"
	}
	m := Machine{At: time.Now().UTC().Truncate(time.Second), Quick: quick, System: runtime.GOOS + "/" + runtime.GOARCH, CPU: field("/proc/cpuinfo", "model name"),
		CPUs: runtime.NumCPU(), Kernel: strings.SplitN(line("/proc/sys/kernel/osrelease"), "-", 2)[0], FileSystem: fsType, Load: load(), Go: runtime.Version(), Modules: map[string]string{}}
	if out, err := exec.Command("git", "version").Output(); err == nil {
		m.Git = strings.TrimPrefix(strings.TrimSpace(string(out)), "git version ")
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			m.Modules[dep.Path] = dep.Version
		}
	}
	return m
}

// line is the first line of a file, "unknown" where there is none.
func line(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(data), "\n")
	return first
}

// load is the machine's load: figures taken beside other work say so.
func load() string {
	parts := strings.Fields(line("/proc/loadavg"))
	return strings.Join(parts[:min(3, len(parts))], " ")
}

// field is the first value of a key in a file of "key : value" lines.
func field(path, key string) string {
	f, err := os.Open(path)
	if err != nil {
		return "unknown"
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if k, v, ok := strings.Cut(s.Text(), ":"); ok && strings.TrimSpace(k) == key {
			return strings.TrimSpace(v)
		}
	}
	return "unknown"
}
