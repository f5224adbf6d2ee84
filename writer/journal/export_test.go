package journal

// Durable returns the last record that a later line of the log proves to be durable.
func (l *Log) Durable() Position {
	at, _ := l.position(l.durable)
	return at
}

// Empty reports whether the folder and the list have no segment.
func (l *Log) Empty() bool { return len(l.heads) == 0 }

// Named reports whether a note vouches for the snapshot n, and n lies on the chain.
func (l *Log) Named(n Named) bool {
	noted, ok := l.Noted(n.SHA256)
	return ok && noted == n
}
