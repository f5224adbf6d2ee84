// Package plugin puts files of ours into the folder of another program, and takes exactly them away
// again: what has Claude Code and Codex call `lopen hook`.
//
// A manifest beside the files has their names and hashes. It is written before the first file and
// removed after the last one, so that what a kill leaves is known to be ours: Install and Remove
// both mend it. A file with another content is the user's, and stays. No symlink is followed below
// the other program's folder, and no file is written that is not in the manifest.
//
// # Concurrency
//
// One process at a time. Of two that install different versions at once, one may leave files that
// the other takes for the user's.
package plugin
