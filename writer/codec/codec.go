package codec

import (
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// A Codec is a way to compress, as headers name it.
type Codec string

// The codecs. The zero value is None: a content as it is.
const (
	None Codec = ""
	Zstd Codec = "zstd"
	Gzip Codec = "gzip"
)

// All are the codecs in the order in which their names are looked for.
var All = []Codec{None, Zstd, Gzip}

var suffixes = map[Codec]string{Zstd: ".zst", Gzip: ".gz"}

// Suffix returns how names of the codec's files end: "", ".zst" or ".gz".
func (c Codec) Suffix() string { return suffixes[c] }

// Cut returns the name of a file without its codec's suffix, and the codec.
func Cut(name string) (string, Codec) {
	for c, suffix := range suffixes {
		if stem, ok := strings.CutSuffix(name, suffix); ok {
			return stem, c
		}
	}
	return name, None
}

// Options say how to compress. The zero value works.
type Options struct {
	Codec     string // zstd, gzip or none; "" means zstd
	Level     int    // from 1, the fastest, to 22 of zstd and 9 of gzip; 0 means 3
	Threshold int64  // in bytes: a file up to this size stays as it is; 0 means 64 KiB
}

const (
	defaultLevel     = 3
	defaultThreshold = 64 << 10
)

// Above reports whether a file of size bytes is to be compressed.
func (o Options) Above(size int64) bool {
	if o.Threshold == 0 {
		o.Threshold = defaultThreshold
	}
	return size > o.Threshold && o.Encoder().Codec != None
}

// An Encoder compresses at one level. The zero value leaves everything as it is.
type Encoder struct {
	Codec Codec
	level int // of the library
}

// Encoder returns the encoder for whole files. Its codec may be None.
func (o Options) Encoder() Encoder {
	if o.Level <= 0 {
		o.Level = defaultLevel
	}
	switch o.Codec {
	case "none":
		return Encoder{}
	case string(Gzip):
		return Encoder{Gzip, min(o.Level, gzip.BestCompression)}
	}
	return Encoder{Zstd, int(zstd.EncoderLevelFromZstd(o.Level))}
}

// Framer returns the encoder for files that are made of frames. Where nothing is to be
// compressed that is gzip which stores: such a file needs frames all the same.
func (o Options) Framer() Encoder {
	if e := o.Encoder(); e.Codec != None {
		return e
	}
	return Encoder{Gzip, gzip.NoCompression}
}

// In returns the encoder e, or the usual one of codec c where e has another.
func (e Encoder) In(c Codec) Encoder {
	if e.Codec == c {
		return e
	}
	return Options{Codec: string(c)}.Encoder()
}
