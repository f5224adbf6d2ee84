// Package codec compresses what lopen stores, and is the only user of a compression library
// below the bundles. A [Codec] is zstd, gzip or none. Its suffix ends the name of a file,
// so a name says how its file is read, whatever the options are now.
//
// There are three shapes:
//
//   - A frame is a content that is compressed and decompressed whole, with a known size:
//     see [Encoder.Frame] and [Decode]. Closed segments are made of frames.
//   - A stream has a content of any size: see [Encoder.Writer] and [NewReader]. The caller
//     bounds what comes of it.
//   - A file is a stream and a foot that has the size of the content: see [Encoder.Create]
//     and [Open].
//
// A [Codec.Lead] begins a part that all tools for the codec skip. Feet, marks between
// frames and padding are such parts, so that the tools read every file.
//
// # Bounds
//
// What comes of a file never has more than [Ratio] times its bytes, and a megabyte: one that
// compresses better is padded, and a reader refuses more before it decompresses anything.
// A frame has the size that its caller expects. No encoder or decoder refers further back
// than 8 MiB.
//
// # Concurrency
//
// Everything but a Reader and a Writer may be used from any goroutine. Encoders and decoders
// are pooled, as one takes megabytes.
package codec
