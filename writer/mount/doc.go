// Package mount sees where one file system ends and another one begins, and keeps what removes and
// changes files from crossing that border. What is mounted in a project while somebody works there
// (a volume of a container, a disk, sshfs) is nobody's to tidy up.
//
// Numbers of mounts are compared, and device numbers only where a system has nothing else: a bind
// mount, of a folder or of a single file, has the device number of what it shows.
package mount
