// Package private keeps folders that are for nobody else: other users of the machine have no rights there, and
// git takes nothing from there, whatever came with a clone.
package private
