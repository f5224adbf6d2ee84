// Package identity derives an identity of a file's content from one stat, and decides
// when it proves that the content has not changed.
package identity
