// Package strictjson reads and writes JSON, and refuses what encoding/json lets through: a
// key that stands twice in an object, bytes that are not UTF-8, lone surrogates, nesting
// beyond a bound, and anything behind the value.
//
// [Marshal] and [Unmarshal] name each member in one place, the tag of a struct's field.
// They are go-json-experiment/json, which no other package imports, with the options that
// give the bytes of encoding/json. [UnmarshalForeign] and [NextForeign] take what other
// programs write.
//
// A [Reader] reads one value at a time, in one pass and without reflection: the tree of
// tasks and the records are too large for reflection. It
// remembers its first error; after that every call returns zero values
// at once, so callers check [Reader.Err] when they are done.
//
//	r := strictjson.NewReader(data)
//	r.Object(func(key string) {
//		switch key {
//		case "name":
//			name = r.Text()
//		default:
//			r.Raw()
//		}
//	})
//	r.End()
//	err := r.Err()
//
// # Concurrency
//
// A Reader belongs to one goroutine. What it returns shares memory with one copy
// of its input, which lives as long as any string of it: that is what makes reading
// a file of many strings cheap, and costs the file's size while they are kept. The
// functions may be called from any goroutine.
package strictjson
