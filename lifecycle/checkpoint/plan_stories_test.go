package checkpoint

import (
	"github.com/lopen-dev/lopen/cache/files"
)

// A story is what happened in a project, and what a session's rewind says of it. The
// session is "s"; its plan is made, and carried out, with each of the options.
type story struct {
	name   string
	tell   func(s *worker) (target *Entry)
	want   []string // of a plain rewind
	shared []string // with Contested, where it is another one
	forced []string // with Force, where it is another one than with Contested
	stands []string // after the plain rewind: paths and contents in turn, "" for nothing
}

var stories = []story{
	// What the loop did, and people.
	{name: "a person put back what a task had made, and changed it again", tell: func(s *worker) *Entry {
		before, _ := s.works("a", "2")
		s.edit("a", "1")
		s.works("b", "1", "b", "-")
		s.edit("a", "2")
		return before
	}, want: []string{"a: foreign, nobody's task, in 5"}, forced: []string{"a: delete"}},
	{name: "the loop's changes", tell: func(s *worker) *Entry {
		s.edit("a", "1", "x", "1", "gone", "1", "link", "-> a", "l", "-> a")
		before, _ := s.works("a", "2", "x", "1+x", "x", "1", "x", "1+x", "gone", "-", "new", "1", "link", "-> b", "l", "-> a")
		return before
	}, want: []string{"a: overwrite", "gone: create", "link: retarget", "new: delete", "x: overwrite"},
		stands: []string{"a", "-rw-r--r-- 1", "x", "-rw-r--r-- 1", "gone", "-rw-r--r-- 1", "new", ""}},
	{name: "a person's edit between two tasks", tell: func(s *worker) *Entry {
		s.edit("a", "1", "b", "1")
		before, _ := s.works("a", "2", "b", "2")
		s.edit("a", "mine")
		s.works("a", "3", "b", "3")
		return before
	}, want: []string{"a: foreign, nobody's task, in 3", "b: overwrite"}, forced: []string{"a: overwrite", "b: overwrite"},
		stands: []string{"a", "-rw-r--r-- 3"}},
	{name: "a person's edit after the last task", tell: func(s *worker) *Entry {
		s.edit("a", "1", "b", "1")
		before, _ := s.works("a", "2")
		s.edit("a", "mine", "b", "-", "c", "mine", "d/e", "mine")
		return before
	}, want: []string{"a: foreign, nobody's task, in 3", "b: foreign, nobody's task, in 3", "c: foreign, nobody's task, in 3",
		"d/e: foreign, nobody's task, in 3", "d: foreign, nobody's task, in 3"},
		forced: []string{"a: overwrite", "b: create", "c: foreign, nobody's task, in 3",
			"d/e: foreign, nobody's task, in 3", "d: foreign, nobody's task, in 3"}},
	{name: "a person moved a file", tell: func(s *worker) *Entry {
		s.edit("a", "1")
		before, _ := s.works("new", "1", "more", "1")
		s.edit("d/here", "<- a", "elsewhere", "<- new")
		return before
	}, want: []string{"a: foreign, nobody's task, in 3", "d/here: foreign, nobody's task, in 3", "d: foreign, nobody's task, in 3",
		"elsewhere: foreign, nobody's task, in 3", "more: delete"},
		forced: []string{"a: create", "d/here: foreign, nobody's task, in 3", "d: foreign, nobody's task, in 3",
			"elsewhere: foreign, nobody's task, in 3", "more: delete"}},
	{name: "a person's file that a task changed", tell: func(s *worker) *Entry {
		before, _ := s.works("a", "2")
		s.edit("mine", "1")
		s.works("mine", "2")
		return before
	}, want: []string{"a: delete", "mine: foreign, nobody's task, in 3"}, forced: []string{"a: delete", "mine: delete"}},
	{name: "there before the first task", tell: func(s *worker) *Entry {
		s.edit("a", "1", "b/c", "1")
		s.works("a", "-", "b", "-")
		before, _ := s.works("a", "2", "b/c", "2", "b/d", "2")
		return before
	}, want: []string{"a: first", "b/c: first", "b/d: delete", "b: first"}},
	{name: "a session that began after the target", tell: func(s *worker) *Entry {
		old := s.worker("old", 0)
		target := old.create(Manual, 0)
		old.works("a", "1")
		s.works("a", "2", "b", "2")
		return target
	}, want: []string{"a: foreign, old t1, in 3", "b: delete"}, forced: []string{"a: first", "b: delete"}},

	// Several tasks at once, and crashes.
	{name: "two runs side by side", tell: func(s *worker) *Entry {
		s.edit("a", "1", "b", "1", "c", "1")
		other := s.worker("other", 0)
		before := s.begin()
		s.edit("a", "2")
		other.begin()
		s.edit("a", "3", "b", "2", "new", "1")
		s.end()
		s.edit("c", "2")
		other.end()
		return before
	}, want: []string{"a: contested, s t1, other t1, in 3", "b: contested, s t1, other t1, in 3", "c: foreign, other t1, in 4", "new: contested, s t1, other t1, in 3"},
		shared: []string{"a: overwrite", "b: overwrite", "c: foreign, other t1, in 4", "new: delete"},
		forced: []string{"a: overwrite", "b: overwrite", "c: overwrite", "new: delete"},
		stands: []string{"a", "-rw-r--r-- 3"}},
	{name: "a crash in a task", tell: func(s *worker) *Entry {
		s.edit("a", "1")
		before := s.begin()
		s.edit("a", "2", "new", "1")
		s.start()
		return before
	}, want: []string{"a: contested, s t1, in 2", "new: contested, s t1, in 2"}, shared: []string{"a: overwrite", "new: delete"}},
	{name: "a crash in a task, and a person", tell: func(s *worker) *Entry {
		s.edit("a", "1")
		before := s.begin()
		s.edit("a", "2")
		s.start()
		s.edit("a", "mine")
		s.works("b", "1")
		return before
	}, want: []string{"a: contested, s t1, in 2", "b: delete"}, shared: []string{"a: overwrite", "b: delete"}},
	{name: "a crash in a task, and another run's checkpoint before that is known", tell: func(s *worker) *Entry {
		s.edit("a", "1")
		other := s.worker("other", 0)
		before := s.begin()
		s.edit("b", "1")
		s.start()
		s.edit("a", "mine")
		other.create(Manual, 0)
		s.works("c", "1")
		return before
	}, want: []string{"a: contested, s t1, in 2", "b: contested, s t1, in 2", "c: delete"}, shared: []string{"a: overwrite", "b: delete", "c: delete"}},
	{name: "a crash in a task, and the session goes on before another run's checkpoint", tell: func(s *worker) *Entry {
		s.edit("a", "1")
		other := s.worker("other", 0)
		before := s.begin()
		s.edit("a", "mine")
		s.start()
		other.create(Manual, 0)
		return before
	}, want: []string{"a: contested, s t1, in 2"}, shared: []string{"a: overwrite"}},
	{name: "a task whose end was not recorded, and a person", tell: func(s *worker) *Entry {
		s.edit("a", "1")
		before := s.begin()
		s.edit("a", "mine")
		s.works("b", "1")
		return before
	}, want: []string{"a: contested, s t1, in 2", "b: delete"}, shared: []string{"a: overwrite", "b: delete"}},
	{name: "another run that was killed", tell: func(s *worker) *Entry {
		s.edit("a", "1")
		other := s.worker("other", 0)
		other.begin()
		s.alive["other"] = false
		before, _ := s.works("a", "2")
		s.works("b", "2")
		return before
	}, want: []string{"a: overwrite", "b: delete"}},

	// Rules.
	{name: "the agent rewrote .gitignore", tell: func(s *worker) *Entry {
		s.edit(".gitignore", ".env\ndata/\nnode_modules/\n", ".env", "secret", "data/x", "1", "node_modules/m", "1", "a", "1")
		before, _ := s.works(".gitignore", "", "a", "2")
		s.works(".env", "changed", "b", "1")
		other := s.worker("other", 0)
		other.works("c", "1")
		return before
	}, want: []string{".gitignore: overwrite", "a: overwrite", "b: delete", "c: foreign, other t1, in 6"},
		stands: []string{".env", "-rw-r--r-- changed", "data/x", "-rw-r--r-- 1", "node_modules/m", "-rw-r--r-- 1"}},
	{name: "the agent ignored src", tell: func(s *worker) *Entry {
		s.edit("src/a", "1")
		before, _ := s.works(".gitignore", "src/\n", "src/a", "2", "src/b", "1")
		return before
	}, want: []string{".gitignore: delete", "src/a: overwrite", "src/b: delete"}, stands: []string{"src/a", "-rw-r--r-- 1", "src/b", ""}},
	{name: "the agent ignored src, and another session began", tell: func(s *worker) *Entry {
		s.edit("src/a", "1", "src/b", "1")
		before, after := s.works(".gitignore", "src/\n", "src/a", "2", "src/b", "2")
		s.worker("other", 0).works("c", "1")
		s.edit("src/b", "mine")
		fork := s.worker("fork", after.Number)
		fork.create(Manual, 0)
		s.edit("src/b", "mine too")
		fork.create(Manual, 0)
		return before
	}, want: []string{".gitignore: delete", "c: foreign, other t1, in 4", "src/a: overwrite", "src/b: foreign, nobody's task, in 6"},
		forced: []string{".gitignore: delete", "c: foreign, other t1, in 4", "src/a: overwrite", "src/b: overwrite"},
		stands: []string{"src/a", "-rw-r--r-- 1", "src/b", "-rw-r--r-- mine too"}},
	{name: "the agent ignored what it made", tell: func(s *worker) *Entry {
		s.edit("a", "1")
		before, _ := s.works(".gitignore", "node_modules/\n", "node_modules/m", "1", "a", "2")
		return before
	}, want: []string{".gitignore: delete", "a: overwrite", "node_modules/m: delete", "node_modules: delete"}, stands: []string{"node_modules/m", ""}},
	{name: "a person's rules made since", tell: func(s *worker) *Entry {
		s.edit("a", "1")
		before, _ := s.works("build/x", "1", "a", "2")
		s.edit(".gitignore", "build/\n")
		s.works("a", "3", "build/y", "1")
		return before
	}, want: []string{".gitignore: foreign, nobody's task, in 3", "a: overwrite", "build: ignored"},
		stands: []string{"build/x", "-rw-r--r-- 1", "build/y", "-rw-r--r-- 1"}},
	{name: "a person's rules for what the agent had removed", tell: func(s *worker) *Entry {
		s.edit("a", "1", "build/x", "1")
		before, _ := s.works("build", "-", "a", "2")
		s.edit(".gitignore", "build/\n")
		return before
	}, want: []string{".gitignore: foreign, nobody's task, in 3", "a: overwrite", "build/x: ignored", "build: ignored"}},
	{name: "a person took a rule away", tell: func(s *worker) *Entry {
		s.create(Manual, 0)
		s.edit(".gitignore", "x\n")
		before, _ := s.works("a", "1")
		s.edit(".gitignore", "")
		s.works("x", "1")
		return before
	}, want: []string{".gitignore: foreign, nobody's task, in 4", "a: delete", "x: ignored"},
		forced: []string{".gitignore: overwrite", "a: delete", "x: ignored"}},
	{name: "ignored before the first task", tell: func(s *worker) *Entry {
		s.edit(".gitignore", "x\n", "x", "1")
		s.create(Manual, 0)
		s.edit(".gitignore", "")
		s.works("x", "-")
		before, _ := s.works("x", "2", "y", "2")
		return before
	}, want: []string{"x: ignored", "y: delete"}},
	{name: "the agent showed what it had ignored", tell: func(s *worker) *Entry {
		before, _ := s.works(".gitignore", "x\n")
		s.edit("x", "mine")
		s.works(".gitignore", "-", "y", "1")
		return before
	}, want: []string{"x: foreign, nobody's task, in 3", "y: delete"}, stands: []string{"x", "-rw-r--r-- mine"}},
	{name: "a person uncovered a file", tell: func(s *worker) *Entry {
		s.edit(".gitignore", "x\n", "x", "1")
		s.create(Manual, 0)
		s.edit(".gitignore", "")
		before, _ := s.works("a", "1")
		s.edit(".gitignore", "y\n")
		s.works("y", "2")
		s.edit(".gitignore", "")
		s.works("b", "1")
		return before
	}, want: []string{"a: delete", "b: delete", "y: uncovered, nobody's task, in 6"}, stands: []string{"x", "-rw-r--r-- 1", "y", "-rw-r--r-- 2"}},
	{name: "hidden, changed by a person, and shown again", tell: func(s *worker) *Entry {
		s.edit("a", "1", "d/b", "1")
		before, _ := s.works("c", "1")
		s.edit(".lopenignore", "a\nd/\n")
		s.works("c", "2")
		s.edit("a", "mine", "d/b", "mine", ".lopenignore", "-")
		s.works("c", "3")
		return before
	}, want: []string{"a: uncovered, nobody's task, in 5", "c: delete", "d/b: uncovered, nobody's task, in 5"},
		forced: []string{"a: overwrite", "c: delete", "d/b: overwrite"}},
	{name: "a task's own, hidden, changed by a person, and shown again", tell: func(s *worker) *Entry {
		before, _ := s.works("y", "1")
		s.edit(".lopenignore", "y\n")
		s.works("c", "2")
		s.edit("y", "mine", ".lopenignore", "-")
		s.works("c", "3")
		return before
	}, want: []string{"c: delete", "y: uncovered, nobody's task, in 5"}, stands: []string{"y", "-rw-r--r-- mine"}},
	{name: "rules from outside", tell: func(s *worker) *Entry {
		s.outside = []files.IgnoreFile{{Path: "//info/exclude", Data: []byte("*.log\n")}}
		s.edit("x.log", "1")
		before, _ := s.works("x.log", "2", "a", "1")
		return before
	}, want: []string{"a: delete"}, stands: []string{"x.log", "-rw-r--r-- 2"}},

	// Repositories.
	{name: "a repository in a captured folder", tell: func(s *worker) *Entry {
		s.edit("src/a", "1")
		before, _ := s.works("src/.git/HEAD", "ref", "src/a", "2", "src/b", "1")
		return before
	}, want: []string{"src/a: overwrite", "src/b: delete"}, stands: []string{"src/.git/HEAD", "-rw-r--r-- ref"}},
	{name: "a repository of its own", tell: func(s *worker) *Entry {
		s.edit("sub/.git/HEAD", "ref", "sub/a", "1", "b", "1")
		before, _ := s.works("sub/a", "2", "b", "2", "clone/.git/HEAD", "ref", "clone/c", "1")
		return before
	}, want: []string{"b: overwrite", "clone: nested"}, stands: []string{"sub/a", "-rw-r--r-- 2", "clone/c", "-rw-r--r-- 1"}},
	{name: "a repository of its own, in another state", tell: func(s *worker) *Entry {
		s.edit("sub/.git/HEAD", "ref", "d/same/.git/HEAD", "ref", "new/.git/HEAD", "")
		before, _ := s.works("sub/.git/HEAD", "another", "new/.git/HEAD", "ref", "a", "1")
		return before
	}, want: []string{"a: delete", "sub: nested"}, stands: []string{"sub/.git/HEAD", "-rw-r--r-- another"}},

	// Folders, and what is in the way.
	{name: "a folder in use", tell: func(s *worker) *Entry {
		before, _ := s.works("d/a", "1", "e/", "", "f/g/h", "1")
		s.edit("d/mine", "1")
		return before
	}, want: []string{"d/a: delete", "d/mine: foreign, nobody's task, in 3", "e: delete", "f/g/h: delete", "f/g: delete", "f: delete"}},
	{name: "a folder in a file's place", tell: func(s *worker) *Entry {
		s.edit("a", "1")
		before, _ := s.works("a", "-", "a/b", "2")
		return before
	}, want: []string{"a/b: delete", "a: overwrite"}, stands: []string{"a", "-rw-r--r-- 1"}},
	{name: "a folder in a file's place, in use", tell: func(s *worker) *Entry {
		s.edit("a", "1")
		before, _ := s.works("a", "-", "a/b", "2")
		s.edit("a/mine", "1")
		return before
	}, want: []string{"a/b: delete", "a/mine: foreign, nobody's task, in 3", "a: blocked"}},
	{name: "a folder in a file's place, with an ignored file", tell: func(s *worker) *Entry {
		s.edit(".gitignore", "*.log", "a", "1")
		before, _ := s.works("a", "-", "a/b", "2", "a/x.log", "2")
		return before
	}, want: []string{"a/b: delete", "a/x.log: ignored", "a: blocked"}, stands: []string{"a/b", "", "a/x.log", "-rw-r--r-- 2"}},
	{name: "a folder in a file's place, with ignored files alone", tell: func(s *worker) *Entry {
		s.edit(".gitignore", "*.log", "a", "1")
		before, _ := s.works("a", "-", "a/c/y.log", "2", "a/c/z.log", "2")
		return before
	}, want: []string{"a/c: ignored", "a: blocked"}, stands: []string{"a/c/y.log", "-rw-r--r-- 2"}},
	{name: "a folder in a file's place, with an ignored file deep in it", tell: func(s *worker) *Entry {
		s.edit(".gitignore", "*.log", "a", "1")
		before, _ := s.works("a", "-", "a/c/b", "2", "a/c/x.log", "2", "a/d/b", "2")
		return before
	}, want: []string{"a/c/b: delete", "a/c/x.log: ignored", "a/d/b: delete", "a/d: delete", "a: blocked"}},
	{name: "a folder in a file's place, with a repository's .git", tell: func(s *worker) *Entry {
		s.edit("a", "1")
		before, _ := s.works("a", "-", "a/b", "2", "a/.git/HEAD", "ref")
		return before
	}, want: []string{"a/.git: nested", "a/b: delete", "a: blocked"}, stands: []string{"a/.git/HEAD", "-rw-r--r-- ref"}},
	{name: "a folder in a link's place, with what the task ignores", tell: func(s *worker) *Entry {
		s.edit("a", "-> b")
		before, _ := s.works("a", "-", "a/b", "2", "a/x.log", "2", "a/.gitignore", "*.log")
		return before
	}, want: []string{"a/.gitignore: delete", "a/b: delete", "a/x.log: delete", "a: overwrite"}},
	{name: "a new folder with an ignored file", tell: func(s *worker) *Entry {
		s.edit(".gitignore", "*.log")
		before, _ := s.works("d/b", "2", "d/e/x.log", "2", "d/e/b", "2", "f/b", "1")
		return before
	}, want: []string{"d/b: delete", "d/e/b: delete", "d/e/x.log: ignored", "f/b: delete", "f: delete"}, stands: []string{"d/e/x.log", "-rw-r--r-- 2", "d/b", ""}},
	{name: "a file in a folder's place", tell: func(s *worker) *Entry {
		s.edit("a/b", "1")
		before, _ := s.works("a", "-", "a", "2")
		return before
	}, want: []string{"a/b: create", "a: overwrite"}, stands: []string{"a/b", "-rw-r--r-- 1"}},
	{name: "another's file in a folder's place", tell: func(s *worker) *Entry {
		s.edit("a/b", "1")
		before, _ := s.works("a", "-")
		s.edit("a", "mine")
		return before
	}, want: []string{"a/b: blocked", "a: foreign, nobody's task, in 3"}, forced: []string{"a/b: create", "a: overwrite"}},
	{name: "a folder that somebody removed", tell: func(s *worker) *Entry {
		s.edit("a/b", "1", "a/c", "1")
		before, _ := s.works("a/c", "-")
		s.edit("a", "-")
		return before
	}, want: []string{"a/b: foreign, nobody's task, in 3", "a/c: create", "a: create"},
		forced: []string{"a/b: create", "a/c: create", "a: create"}},
}
