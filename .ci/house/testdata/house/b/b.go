package b

import other "github.com/lopen-dev/lopen/a"

var u other.Used
