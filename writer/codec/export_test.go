package codec

// Head returns what a file with a content of so many bytes begins with.
func Head(c Codec, size int64) []byte { return c.head(size) }
