package crashfs

import (
	"io/fs"
	"path"
	"strings"
	"syscall"
)

const (
	maxName  = 255
	maxLinks = 40
)

// A place is where a path leads: the entry name of the folder dir, and the inode
// there if there is one. dir is nil for the folder itself (".").
type place struct {
	dir  *inode
	name string
	node *inode
}

// walk follows a path from the folder, through symlinks that stay inside, and
// follows one at the end if it is told to.
func (f *folder) walk(name string, follow bool) (place, error) {
	todo, err := elements(name)
	if err != nil {
		return place{}, err
	}
	root, err := f.top()
	if err != nil {
		return place{}, err
	}
	stack := []*inode{root}
	for links := 0; len(todo) > 0; {
		c, last := todo[0], len(todo) == 1
		todo = todo[1:]
		cur := stack[len(stack)-1]
		switch c {
		case "", ".":
			continue
		case "..": // of a symlink
			if len(stack) == 1 {
				return place{}, syscall.EINVAL
			}
			stack = stack[:len(stack)-1]
			continue
		}
		c, ino := f.d.entry(cur, c)
		node := f.d.inodes[ino]
		switch {
		case node.isLink() && (!last || follow):
			links++
			if todo, err = follows(node, links, todo); err != nil {
				return place{}, err
			}
		case last:
			return place{cur, c, node}, nil
		case node == nil:
			return place{}, syscall.ENOENT
		case !node.mode.IsDir():
			return place{}, syscall.ENOTDIR
		default:
			stack = append(stack, node)
		}
	}
	return place{nil, ".", stack[len(stack)-1]}, nil
}

func (n *inode) isLink() bool { return n != nil && n.mode&fs.ModeSymlink != 0 }

// top is the folder itself.
func (f *folder) top() (*inode, error) {
	root := f.d.inodes[f.ino]
	if root == nil || root.nlink == 0 {
		return nil, syscall.ENOENT
	}
	return root, nil
}

// follows puts a symlink's target before what is left of a path.
func follows(link *inode, links int, rest []string) ([]string, error) {
	if links > maxLinks {
		return nil, syscall.ELOOP
	}
	if path.IsAbs(link.target) {
		return nil, syscall.EINVAL
	}
	return append(strings.Split(link.target, "/"), rest...), nil
}

// elements are the parts of a path that leads nowhere outside by itself.
func elements(name string) ([]string, error) {
	if name == "" {
		return nil, syscall.ENOENT
	}
	if path.IsAbs(name) {
		return nil, syscall.EINVAL
	}
	all := strings.Split(name, "/")
	for _, c := range all {
		if c == ".." {
			return nil, syscall.EINVAL
		}
		if len(c) > maxName {
			return nil, syscall.ENAMETOOLONG
		}
	}
	return all, nil
}

// entry is the entry of a folder that a name stands for, with its own name.
func (d *Disk) entry(dir *inode, name string) (string, uint64) {
	if ino := dir.entries[name]; ino != 0 || d.mode != Folding {
		return name, ino
	}
	for other, ino := range dir.entries {
		if strings.EqualFold(other, name) {
			return other, ino
		}
	}
	return name, 0
}

// find is walk to something that is there.
func (f *folder) find(name string, follow bool) (place, error) {
	p, err := f.walk(name, follow)
	if err == nil && p.node == nil {
		err = syscall.ENOENT
	}
	return p, err
}

// vacant is walk to a name that is free, where an inode may be made if one is
// needed.
func (f *folder) vacant(name string) (place, error) {
	p, err := f.walk(name, false)
	switch {
	case err != nil:
		return p, err
	case p.node != nil:
		return p, syscall.EEXIST
	case f.d.maxInodes > 0 && f.d.usedInodes >= f.d.maxInodes:
		return p, syscall.ENOSPC
	}
	return p, nil
}
