// Package seen notes which snapshots of a project's files lopen itself wrote into the project.
//
// A snapshot spares the reading of files, and whoever works in the project can write one that hides
// what they changed. So its SHA-256 lies in the user's state folder: one file for each snapshot, mode
// 0600, named by the SHA-256 of the project's real path and the snapshot's path below .lopen, and
// replaced atomically. A snapshot with another hash is not believed. What is damaged, missing or cannot
// be read costs that every file is read once.
//
// # Concurrency
//
// Any number of processes may note at once: each file is replaced whole, and who writes a snapshot
// excludes others until its hash is noted.
package seen
