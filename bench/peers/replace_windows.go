package main

// openRenameio is nil: renameio says that nothing on Windows is what it promises.
var openRenameio func(string, int) (Peer, error)
