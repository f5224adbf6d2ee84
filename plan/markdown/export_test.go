package markdown

// PieceSize is what Parse has.
const PieceSize = pieceSize

// ParsePieces is Parse, or ParseHeadings, in pieces of at least size bytes.
func ParsePieces(src []byte, headings bool, size int) *Document {
	if headings {
		return parse(src, headingEngine, true, size)
	}
	return parse(src, engine, false, size)
}

// CountPieces returns how many pieces that makes.
func CountPieces(src []byte, size int) (n int) {
	for range pieces(src, engine, size) {
		n++
	}
	return n
}
