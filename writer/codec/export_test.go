package codec

// Foot returns what a file with a content of so many bytes ends with.
func Foot(c Codec, size int64) []byte { return c.foot(size) }
