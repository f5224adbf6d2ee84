// Package identity says what one stat tells of a file's content, and when that is
// enough to believe that the content is what it was.
package identity
