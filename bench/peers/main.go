package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/perf/benchfmt"

	"github.com/lopen-dev/lopen/writer"
)

// Results are what results.json holds.
type Results struct {
	Machine map[string]string
	// Rounds are what the benchmarks of one process reported, by name and unit.
	Rounds []map[string]float64
}

func main() {
	log.SetFlags(0)
	if err := run(); err != nil {
		log.Fatal("peers: ", err)
	}
}

func run() error {
	out := flag.String("out", ".", "folder for RESULTS.md and results.json")
	readme := flag.String("readme", "", "file whose part between two marks shows what people notice")
	from := flag.String("from", "", "results.json of a run: measure nothing, write its results again")
	quick := flag.Bool("quick", false, "few samples of small work, in some minutes")
	carry := flag.Bool("carry", false, "with -from: measure export, import and backup again")
	budget := flag.Duration("budget", 25*time.Minute, "the time after which no other round begins")
	flag.Parse()
	r := new(Results)
	if *from != "" {
		data, err := os.ReadFile(*from)
		if err == nil {
			err = json.Unmarshal(data, r)
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", *from, err)
		}
		if *carry {
			if err := r.carry(*quick, r.Rounds[0]); err != nil {
				return err
			}
		}
	} else if err := r.measure(*quick, *budget); err != nil {
		return err
	}
	return r.write(*out, *readme)
}

// measure runs the benchmarks of this folder and of the one above in rounds, the first of
// them whatever it takes.
func (r *Results) measure(quick bool, budget time.Duration) error {
	if err := r.look(quick); err != nil {
		return err
	}
	benchtime := "3500ms"
	if quick {
		benchtime = "200ms"
	}
	for begun, round := time.Now(), time.Duration(0); round == 0 || !quick && time.Since(begun)+round < budget; {
		log.Printf("round %d, after %s", len(r.Rounds)+1, time.Since(begun).Round(time.Second))
		start, figures := time.Now(), map[string]float64{}
		if round == 0 {
			if err := r.carry(quick, figures); err != nil {
				return err
			}
		}
		for _, folder := range []string{".", ".."} {
			out, err := command("go", "-C", folder, "test", "-run", "^$", "-bench", pattern(), "-benchmem", "-benchtime", benchtime,
				"-short="+strconv.FormatBool(quick), "-timeout", "2h", ".")
			if err != nil {
				return err
			}
			read(out, figures)
		}
		r.Rounds, round = append(r.Rounds, figures), time.Since(start)
	}
	r.Machine["load after (1, 5, 15 min)"] = load()
	return nil
}

// carry measures export, import and backup, which are processes on one large project.
func (r *Results) carry(quick bool, figures map[string]float64) error {
	r.Machine["export, import and backup"] = time.Now().UTC().Format("2006-01-02 15:04 MST") + ", load " + load()
	for _, tool := range []string{"restic version", "borg --version"} {
		out, _ := exec.Command("sh", "-c", tool).Output() // "" without it
		name, _, _ := strings.Cut(tool, " ")
		r.Machine[name] = cmp.Or(strings.TrimSpace(string(out)), "not found")
	}
	args := []string{"-C", "../..", "run", "./bench/carry"}
	if quick {
		args = append(args, "-messages", "10000", "-mib", "64", "-rounds", "1")
	}
	out, err := command("go", args...)
	read(out, figures)
	return err
}

// pattern is of the benchmarks that the rows name.
func pattern() string {
	var names []string
	for _, w := range slices.Concat(bounds, figures, people) {
		name, _, _ := strings.Cut(w.bench, "/")
		names = append(names, name)
	}
	return "^Benchmark(" + strings.Join(names, "|") + ")$"
}

func command(name string, args ...string) ([]byte, error) {
	cmd := exec.Command(name, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s", cmd, err, out)
	}
	return out, nil
}

// read takes what benchmarks printed.
func read(out []byte, figures map[string]float64) {
	for r := benchfmt.NewReader(bytes.NewReader(out), "benchmarks"); r.Scan(); {
		if res, ok := r.Result().(*benchfmt.Result); ok {
			name, _, _ := strings.Cut(string(res.Name.Full()), "-") // the number of processors
			for _, v := range res.Values {
				if v.OrigUnit == "" {
					v.OrigUnit, v.OrigValue = v.Unit, v.Value
				}
				figures[name+" "+v.OrigUnit] = v.OrigValue
			}
		}
	}
}

// look says where and with what a run is made.
func (r *Results) look(quick bool) error {
	fsType, _, err := writer.FSType(os.TempDir())
	if err != nil {
		return err
	}
	git, _ := exec.Command("git", "version").Output() // "" without it
	r.Machine = map[string]string{
		"when": time.Now().UTC().Format("2006-01-02 15:04 MST"), "file system": fsType, "git": strings.TrimSpace(string(git)), "load before (1, 5, 15 min)": load(),
		"machine": fmt.Sprintf("%s, %d CPUs, %s/%s, %s", match("/proc/cpuinfo", `model name\s*: (.*)`), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version()),
		"kernel":  match("/proc/sys/kernel/osrelease", `([^-\n]*)`),
	}
	if quick {
		r.Machine["run"] = "quick: few samples of small work"
	}
	for _, k := range contenders {
		if k.module != "" {
			version, err := command("go", "list", "-m", "-f", "{{.Version}}", k.module)
			if err != nil {
				return err
			}
			r.Machine[k.module] = strings.TrimSpace(string(version))
		}
	}
	return nil
}

// load is the machine's: figures taken while it did other work say so.
func load() string { return match("/proc/loadavg", `(\S+ \S+ \S+)`) }

// match is what the group of an expression matches in a file, "" if nothing does.
func match(path, expr string) string {
	data, _ := os.ReadFile(path)
	if found := regexp.MustCompile(expr).FindSubmatch(data); found != nil {
		return string(found[1])
	}
	return ""
}
