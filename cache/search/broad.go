package search

import "context"

const (
	// maxNewest is how many entries are compared, or looked up, before FTS5 is asked for a beginning that very many
	// words have.
	maxNewest = 4096
	// least is what looking up costs at least, in entries.
	least = 16
)

// takeNewest compares the newest entries with a query that has a beginning of very many words: most often
// they fill the pool, and FTS5 would merge the entries of all these words before it finds the first. It
// returns the stretches of the others.
func (f *finder) takeNewest(ctx context.Context, all []stretch) ([]stretch, error) {
	left := maxNewest
	for i, s := range all {
		for s.last >= s.first {
			if left <= 0 {
				return append([]stretch{s}, all[i+1:]...), nil
			}
			n := min(left, 2*Ranked)
			if err := f.lookUpEasy(s.first, s.last, n); err != nil {
				return nil, err
			}
			if err := f.takeAll(ctx); err != nil || f.pool.full() {
				return nil, err
			}
			if left -= max(len(f.ids), least); len(f.ids) < n {
				break
			}
			s.last = f.ids[n-1] - 1
		}
	}
	return nil, nil
}

// lookUpEasy is lookUp for what of the query is easy to look up.
func (f *finder) lookUpEasy(first, last int64, limit int) error {
	if f.query.easy != "" {
		return f.lookUp(f.query.easy, first, last, limit)
	}
	f.ids = f.ids[:0]
	for id := last; id >= first && len(f.ids) < limit; id-- {
		f.ids = append(f.ids, id)
	}
	return nil
}
