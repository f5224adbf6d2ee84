package checkpoint

// rewoundStories are of rewinds over rewinds, of forks, and of what was thinned.
var rewoundStories = []story{
	{name: "a rewind gives the owner back", tell: func(s *worker) *Entry {
		s.edit("a", "1", "b", "1")
		first := s.create(Manual, 0)
		s.edit("a", "mine")
		second := s.create(Manual, 0)
		s.works("a", "2", "b", "2")
		s.rewind(second, all)
		s.works("b", "3")
		return first
	}, want: []string{"a: foreign, nobody's task, in 2", "b: overwrite"}, forced: []string{"a: overwrite", "b: overwrite"},
		stands: []string{"a", "-rw-r--r-- mine", "b", "-rw-r--r-- 1"}},
	{name: "undo of undo", tell: func(s *worker) *Entry {
		s.edit("a", "1", "first", "1")
		before, _ := s.works("a", "2", "new/x", "1", "first", "-")
		_, one := s.rewind(before, all)
		_, two := s.rewind(one, all)
		s.rewind(two, all)
		return one
	}, want: []string{"a: overwrite", "first: delete", "new/x: create", "new: create"},
		stands: []string{"a", "-rw-r--r-- 2", "new/x", "-rw-r--r-- 1", "first", ""}},
	{name: "undo of a rewind to what a person made", tell: func(s *worker) *Entry {
		s.edit("a", "1")
		first := s.create(Manual, 0)
		s.edit("a", "mine")
		second := s.create(Manual, 0)
		s.rewind(first, force)
		_, before := s.rewind(second, all)
		return before
	}, want: []string{"a: overwrite"}, stands: []string{"a", "-rw-r--r-- 1"}},
	{name: "undo of another session's rewind", tell: func(s *worker) *Entry {
		s.edit("a", "1")
		s.create(Manual, 0)
		other := s.worker("other", 0)
		first := other.create(Manual, 0)
		s.edit("a", "mine")
		second := other.create(Manual, 0)
		other.rewind(first, force)
		_, before := other.rewind(second, all)
		return before
	}, want: []string{"a: foreign, other's rewind, nobody's task, in 7"}, forced: []string{"a: overwrite"}},
	{name: "another session brought back what its task had removed", tell: func(s *worker) *Entry {
		s.edit("notes", "1")
		other := s.worker("other", 0)
		first, _ := other.works("notes", "-")
		before, _ := s.works("new", "1")
		other.rewind(first, RewindOptions{Paths: []string{"notes"}})
		return before
	}, want: []string{"new: delete", "notes: foreign, other's rewind, in 6"}, stands: []string{"notes", "-rw-r--r-- 1", "new", ""}},
	{name: "another session took back what its task had done", tell: func(s *worker) *Entry {
		s.edit("f", "1")
		other := s.worker("other", 0)
		first, _ := other.works("f", "2", "made", "1")
		before, _ := s.works("new", "1", "f", "3")
		other.rewind(first, force)
		s.works("new", "2")
		return before
	}, want: []string{"f: foreign, other's rewind, in 6", "made: foreign, other's rewind, in 6", "new: delete"},
		forced: []string{"f: overwrite", "made: create", "new: delete"}, stands: []string{"f", "-rw-r--r-- 1", "made", ""}},
	{name: "a task on what another session brought back", tell: func(s *worker) *Entry {
		s.edit("f", "1")
		other := s.worker("other", 0)
		first, _ := other.works("f", "2")
		before := s.create(Manual, 0)
		other.rewind(first, all)
		s.works("f", "3")
		return before
	}, want: []string{"f: foreign, other's rewind, in 5"}, forced: []string{"f: overwrite"}},
	{name: "there before the first task, and brought back twice", tell: func(s *worker) *Entry {
		s.edit("f", "1")
		before, after := s.works("f", "-")
		s.rewind(before, all)
		s.works("f", "2")
		s.rewind(before, all)
		return after
	}, want: []string{"f: first"}},
	{name: "the undo of a rewind in which another's task began", tell: func(s *worker) *Entry {
		s.edit("a", "1", "b", "1", "c", "1", "d", "1")
		other := s.worker("other", 0)
		target, _ := s.works("a", "2", "b", "2", "c", "-", "new", "1")
		before := s.create(BeforeRewind, target.Number)
		s.edit("a", "1", "c", "1") // its first half
		other.begin()
		s.edit("d", "2")
		s.edit("b", "1", "new", "-") // and the rest
		s.create(AfterRewind, target.Number)
		other.end()
		return before
	}, want: []string{"a: overwrite", "b: overwrite", "c: delete", "d: foreign, other t1, in 5", "new: create"},
		forced: []string{"a: overwrite", "b: overwrite", "c: delete", "d: overwrite", "new: create"},
		stands: []string{"a", "-rw-r--r-- 2", "b", "-rw-r--r-- 2", "c", "", "d", "-rw-r--r-- 2", "new", "-rw-r--r-- 1"}},
	{name: "another's rewind while a task was at work", tell: func(s *worker) *Entry {
		s.edit("a", "1", "b", "1")
		other := s.worker("other", 0)
		target, _ := other.works("a", "2", "b", "2")
		before := s.begin()
		other.create(BeforeRewind, target.Number)
		s.edit("a", "1", "c", "1")
		s.end()
		s.edit("b", "1")
		other.create(AfterRewind, target.Number)
		return before
	}, want: []string{"a: foreign, other's rewind, in 5", "b: foreign, other's rewind, in 6", "c: delete"},
		forced: []string{"a: overwrite", "b: overwrite", "c: delete"}},
	{name: "another's rewind that is not finished", tell: func(s *worker) *Entry {
		s.edit("a", "1", "b", "1")
		other := s.worker("other", 0)
		target, _ := other.works("a", "2", "b", "2")
		before := s.begin()
		other.create(BeforeRewind, target.Number)
		s.edit("a", "1", "c", "1")
		s.end()
		return before
	}, want: []string{"a: foreign, other's rewind, in 5", "c: delete"}, forced: []string{"a: overwrite", "c: delete"}},
	{name: "thinned before a rewind", tell: func(s *worker) *Entry {
		s.edit("a", "1")
		first := s.create(Manual, 0)
		s.works("a", "2")
		s.edit("a", "mine")
		s.rewind(first, force)
		s.forget(4)
		s.works("a", "3")
		return first
	}, want: []string{"a: foreign, nobody's task, in 5"}, forced: []string{"a: overwrite"}},
	{name: "back to before a rewind whose begin was thinned", tell: func(s *worker) *Entry {
		s.edit("a", "1")
		first := s.create(Manual, 0)
		_, after := s.works("a", "2")
		s.edit("a", "mine")
		s.rewind(first, force)
		s.forget(4)
		return after
	}, want: []string{"a: foreign, nobody's task, in 5"}, forced: []string{"a: overwrite"}},
	{name: "a fork of a fork", tell: func(s *worker) *Entry {
		s.edit("a", "1", "b", "1", "c", "1")
		one := s.worker("one", 0)
		before, after := one.works("a", "2")
		two := s.worker("two", after.Number)
		one.works("b", "2")
		_, end := two.works("c", "2")
		s.last = end.Number
		s.works("d", "2")
		return before
	}, want: []string{"a: overwrite", "b: foreign, one t2, in 4", "c: overwrite", "d: delete"},
		forced: []string{"a: overwrite", "b: overwrite", "c: overwrite", "d: delete"}},
	{name: "a fork while a task is at work", tell: func(s *worker) *Entry {
		s.edit("a", "1")
		other := s.worker("other", 0)
		before := other.begin()
		s.last = before.Number
		s.edit("a", "2")
		other.end()
		return before
	}, want: []string{"a: contested, other t1, in 2"}, shared: []string{"a: overwrite"}},
	{name: "the session that a fork comes from works on", tell: func(s *worker) *Entry {
		other := s.worker("other", 0)
		before := other.begin()
		s.last = before.Number
		s.edit("a", "1")
		s.works("b", "1")
		s.edit("c", "1")
		other.end()
		s.works("d", "1")
		return before
	}, want: []string{"a: contested, other t1, in 2", "b: contested, other t1, s t1, in 3", "c: contested, other t1, in 4", "d: delete"},
		shared: []string{"a: delete", "b: delete", "c: delete", "d: delete"}},
	{name: "thinned between", tell: func(s *worker) *Entry {
		s.edit("a", "1", "b", "1")
		before, _ := s.works("a", "2")
		s.works("b", "2", "new", "1")
		s.works("c", "2")
		s.forget(2, 3, 4, 5)
		return before
	}, want: []string{"a: overwrite", "b: overwrite", "c: delete", "new: delete"}},
	{name: "thinned where a person edited", tell: func(s *worker) *Entry {
		s.edit("a", "1", "b", "1")
		before, _ := s.works("a", "2")
		s.edit("b", "mine")
		s.works("c", "2")
		s.works("d", "2")
		s.forget(2, 3)
		return before
	}, want: []string{"a: contested, s t1, s t2, nobody's task, in 4", "b: contested, s t1, s t2, nobody's task, in 4", "c: contested, s t1, s t2, nobody's task, in 4", "d: delete"},
		shared: []string{"a: overwrite", "b: overwrite", "c: delete", "d: delete"}},
}
