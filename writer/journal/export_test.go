package journal

// Durable is the last record that a later line of the log knows to be on the disk.
func (l *Log) Durable() Position {
	at, _ := l.position(l.durable)
	return at
}

// Empty says that the folder has no segment at all, and none is missing.
func (l *Log) Empty() bool { return len(l.heads) == 0 }

// Named says whether a note vouches for a snapshot, which lies on the chain.
func (l *Log) Named(n Named) bool {
	noted, ok := l.Noted(n.SHA256)
	return ok && noted == n
}
