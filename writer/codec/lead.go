package codec

import "encoding/binary"

const (
	// magic begins a frame of zstd that is skipped (RFC 8878, 3.1.2).
	magic = 0x184D2A5B
	// maxPad is the most that a skipped part of padding has: what fits in the extra field of gzip.
	maxPad = 60 << 10
)

// gzipLead begins a member of gzip without content, which has an extra field (RFC 1952). The
// field's length follows.
var gzipLead = []byte{0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 0, 255}

// gzipTail ends such a member: an empty block, the checksum of nothing, and its length.
var gzipTail = []byte{3, 0, 0, 0, 0, 0, 0, 0, 0, 0}

// Lead returns the bytes before n bytes of any data, of which a tool for the codec skips
// all, [Codec.Tail] included. The data of gzip has at most 64,000 bytes.
func (c Codec) Lead(n int) []byte {
	if c == Zstd {
		return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, magic), uint32(n))
	}
	lead := append([]byte{}, gzipLead...)
	lead = binary.LittleEndian.AppendUint16(lead, uint16(n+4))
	lead = append(lead, 'L', 'o')
	return binary.LittleEndian.AppendUint16(lead, uint16(n))
}

// LeadSize returns the length of a lead in bytes.
func (c Codec) LeadSize() int { return len(c.Lead(0)) }

// Tail returns the bytes behind the data.
func (c Codec) Tail() []byte {
	if c == Gzip {
		return gzipTail
	}
	return nil
}

// LeadMark returns the bytes that begin every lead.
func (c Codec) LeadMark() []byte {
	if c == Zstd {
		return c.Lead(0)[:4]
	}
	return gzipLead
}

// ReadLead returns how many bytes of data are behind a lead. ok is false if head does not
// begin with one.
func (c Codec) ReadLead(head []byte) (n int, ok bool) {
	size := c.LeadSize()
	if len(head) < size {
		return 0, false
	}
	if c == Zstd {
		n = int(binary.LittleEndian.Uint32(head[4:]))
	} else {
		n = int(binary.LittleEndian.Uint16(head[size-2:]))
	}
	return n, string(c.Lead(n)) == string(head[:size])
}

// Pad returns at least n bytes that a tool for the codec skips, not many more than that.
func (c Codec) Pad(n int) (pad []byte) {
	for len(pad) < n {
		zeros := max(min(n-len(pad)-c.LeadSize()-len(c.Tail()), maxPad), 0)
		pad = append(append(append(pad, c.Lead(zeros)...), make([]byte, zeros)...), c.Tail()...)
	}
	return pad
}
