// Package open has what every open of a name shares: nothing is waited for, and what stands
// in a file's place has a name.
package open
