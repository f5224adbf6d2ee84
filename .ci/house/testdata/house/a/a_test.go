package a_test

import (
	"testing"

	"github.com/lopen-dev/lopen/a"
)

func TestIt(*testing.T) { a.TestedOnly() }

func ExampleInExample() { a.InExample() }
