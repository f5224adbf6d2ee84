package carry

// A shape says what the members of an object of ours are. A member that it does not name is a
// text, or has texts in it, and its name may say that it is a secret.
type shape struct {
	kept   []string          // no texts: times, words of this program, IDs of sessions
	hashes []string          // kept if they are hashes, else texts
	ids    []string          // IDs of tasks, or lists of them
	texts  []string          // texts, or lists of them
	inner  map[string]*shape // objects
	lists  map[string]*shape // lists of objects
	own    map[string]rule   // what has a rule of its own
	// checkpoints are the members that lead to a checkpoint.
	checkpoints []string
	task        bool // it is that of a task, with an ID and a name
}

// A rule returns what takes the place of a value.
type rule func(t *texts, value string) ([]byte, error)

// The shapes of records, of the operations in them, and of the files in a snapshot.
var (
	rewindingShape = &shape{
		hashes: []string{"to", "before", "after"},
		ids:    []string{"task"},
		own:    map[string]rule{"paths": (*texts).paths},
	}
	settingsShape = &shape{
		kept:  []string{"timeout", "idleTimeout"},
		texts: []string{"agent", "unit"},
		own:   map[string]rule{"command": (*texts).settingsCommand, "check": (*texts).settingsCheck},
	}
	headerShape = &shape{
		kept:  []string{"status", "phase", "step", "exitReason", "createdAt", "updatedAt", "completedAt"},
		ids:   []string{"component", "activeTask"},
		texts: []string{"cwd", "agentName", "agentSession", "models", "transactionId"},
		inner: map[string]*shape{
			"lineage":   {kept: []string{"kind"}, own: map[string]rule{"from": (*texts).origin}},
			"settings":  settingsShape,
			"worktree":  {hashes: []string{"base"}, texts: []string{"path", "branch"}},
			"rateLimit": {kept: []string{"resetsAt", "seenAt"}},
			"git":       {hashes: []string{"head", "lastTaskCommit"}, texts: []string{"branch"}},
			"check":     {kept: []string{"at", "duration"}, ids: []string{"task"}, texts: []string{"command"}},
		},
		lists: map[string]*shape{
			"resources": {hashes: []string{"sha256"}, texts: []string{"kind", "path", "header"}},
		},
		own: map[string]rule{"data": (*texts).data, "modelConfig": (*texts).data},
	}
	iterationShape = &shape{
		kept:  []string{"startedAt", "duration"},
		ids:   []string{"task"},
		texts: []string{"model"},
	}
	taskShape = &shape{
		task:  true,
		kept:  []string{"kind", "state", "box", "startedAt", "completedAt"},
		ids:   []string{"id", "dependsOn"},
		texts: []string{"name", "lastError"},
		lists: map[string]*shape{
			"log": {kept: []string{"startedAt", "endedAt"}, texts: []string{"signal", "error", "artifacts"}},
		},
	}
	opShape = &shape{
		kept:  []string{"op"},
		ids:   []string{"id", "of", "from", "parent", "inserted"},
		texts: []string{"to", "paths", "unset"},
		inner: map[string]*shape{"set": headerShape, "task": taskShape},
		lists: map[string]*shape{"iterations": iterationShape},
	}
	attemptShape = &shape{
		kept:   []string{"startedAt", "endedAt", "retryAt"},
		hashes: []string{"gitBefore", "gitAfter"},
		ids:    []string{"task", "leaves"},
		texts:  []string{"signal", "agent", "agentSession", "model", "failure", "then", "problem", "said", "denied", "tail", "checkTail"},
		inner:  map[string]*shape{"check": {texts: []string{"command"}}},
		lists: map[string]*shape{
			"context": {hashes: []string{"sha256"}, texts: []string{"path", "header"}},
			"files":   {hashes: []string{"before", "after"}, texts: []string{"path", "change", "from"}},
		},
		own: map[string]rule{"command": (*texts).command},
	}
	recordShape = &shape{
		kept:   []string{"at", "event"},
		hashes: []string{"incarnation", "checkpoint"},
		inner:  map[string]*shape{"rewind": rewindingShape},
		lists:  map[string]*shape{"ops": opShape, "attempts": attemptShape},
		own:    map[string]rule{"snapshot": (*texts).snapshotRef, "openCalls": (*texts).calls},

		checkpoints: []string{"checkpoint", "rewind"},
	}
	stateShape   = stateShapeOf(treeShape())
	metricsShape = &shape{
		kept:  []string{"module"},
		inner: map[string]*shape{"totals": {kept: []string{"duration"}}},
		lists: map[string]*shape{"iterations": iterationShape},
		own:   map[string]rule{"id": (*texts).sessionID},
	}
)

// treeShape returns the shape of a task in state.json, which has its children within it.
func treeShape() *shape {
	s := *taskShape
	s.lists = map[string]*shape{"log": taskShape.lists["log"], "children": &s}
	return &s
}

// stateShapeOf returns the shape of state.json: the header, the Mark and the tasks.
func stateShapeOf(task *shape) *shape {
	s := *headerShape
	s.kept = append([]string{"module"}, s.kept...)
	s.hashes = []string{"incarnation", "checkpoint", "undo"}
	s.checkpoints = []string{"checkpoint", "undo", "rewinding"}
	s.inner = with(s.inner, "rewinding", rewindingShape)
	s.lists = with(s.lists, "tasks", task)
	s.own = with(with(s.own, "id", (*texts).sessionID), "openCalls", (*texts).calls)
	return &s
}

func with[T any](m map[string]T, key string, v T) map[string]T {
	all := map[string]T{key: v}
	for k, v := range m {
		all[k] = v
	}
	return all
}
