// Package strictjson reads JSON one value at a time, in one pass and without
// reflection, and refuses what encoding/json lets through: a key that stands twice
// in an object, bytes that are not UTF-8, lone surrogates, nesting beyond a bound,
// and anything behind the value.
//
// A [Reader] remembers its first error; after that every call returns zero values
// at once, so callers check [Reader.Err] when they are done. It belongs to one
// goroutine. The strings that it returns share memory with its input.
package strictjson
