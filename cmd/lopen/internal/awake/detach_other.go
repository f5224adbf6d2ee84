//go:build !unix

package awake

import "os/exec"

func detach(*exec.Cmd) {}
