package main

// ofNil are of contexts that are nil.
var ofNil = []mutant{
	{
		"nil: a lock", "writer/lock.go",
		"if ctx == nil {",
		"if false {",
		"./lifecycle", "TestNilContextsAreErrors",
	},
	{
		"nil: a hold of blobs", "writer/blob/lock.go",
		"if ctx == nil {",
		"if false {",
		"./lifecycle", "TestNilContextsAreErrors",
	},
	{
		"nil: who waits for the disk", "actors/actor.go",
		"if ctx == nil {\n\t\treturn fmt.Errorf(\"sync",
		"if false {\n\t\treturn fmt.Errorf(\"sync",
		"./actors", "TestNilContext",
	},
	{
		"nil: an actor is not closed", "actors/actor.go",
		"if ctx == nil {\n\t\treturn fmt.Errorf(\"close",
		"if false {\n\t\treturn fmt.Errorf(\"close",
		"./actors", "TestNilContext",
	},
	{
		"nil: nor are all of them", "actors/supervisor.go",
		"if ctx == nil {",
		"if false {",
		"./actors", "TestNilContext",
	},
	{
		"nil: a snapshot", "cache/files/take.go",
		"if ctx == nil {",
		"if false {",
		"./lifecycle", "TestNilContextsAreErrors",
	},
	{
		"nil: a listing", "cache/files/hidden.go",
		"if ctx == nil {\n\t\treturn Listing",
		"if false {\n\t\treturn Listing",
		"./lifecycle", "TestNilContextsAreErrors",
	},
	{
		"nil: a session is not closed", "lifecycle/session.go",
		"if ctx == nil {\n\t\treturn absent(\"close",
		"if false {\n\t\treturn absent(\"close",
		"./lifecycle", "TestNilContextsAreErrors",
	},
	{
		"nil: a session is not changed", "lifecycle/session.go",
		"if ctx == nil {\n\t\treturn absent(\"change",
		"if false {\n\t\treturn absent(\"change",
		"./lifecycle", "TestNilContextsAreErrors",
	},
	{
		"nil: nobody is woken", "lifecycle/session.go",
		"if ctx == nil {\n\t\treturn false",
		"if false {\n\t\treturn false",
		"./lifecycle", "TestNilContextsAreErrors",
	},
	{
		"nil: a store is not closed", "lifecycle/store.go",
		"return absent(\"close store\", s.Path(), \"context\")",
		"return nil",
		"./lifecycle", "TestNilContextsAreErrors",
	},
	{
		"nil: no session is opened that cannot be closed", "lifecycle/place.go",
		"if ctx == nil {",
		"if false {",
		"./lifecycle", "TestNilContextsAreErrors",
	},
	{
		"nil: data is not verified", "lifecycle/repair.go",
		"if r == nil || ctx == nil {",
		"if r == nil {",
		"./lifecycle", "TestNilContextsAreErrors",
	},
	{
		"nil: nor are blobs", "lifecycle/repair.go",
		"if ctx == nil {\n\t\treturn 0",
		"if false {\n\t\treturn 0",
		"./lifecycle", "TestNilContextsAreErrors",
	},
	{
		"nil: doctor says so", "lifecycle/repair.go",
		"if ctx == nil {\n\t\treturn []",
		"if false {\n\t\treturn []",
		"./lifecycle", "TestNilContextsAreErrors",
	},
	{
		"nil: an export", "lifecycle/carry.go",
		"open == nil || ctx == nil",
		"open == nil",
		"./lifecycle", "TestNilContextsAreErrors",
	},
	{
		"nil: a bundle", "lifecycle/carry.go",
		"if from == nil || ctx == nil {",
		"if false {",
		"./lifecycle", "TestNilContextsAreErrors",
	},
	{
		"nil: a watch", "lifecycle/conversation.go",
		"fn == nil || ctx == nil",
		"fn == nil",
		"./lifecycle", "TestNilContextsAreErrors",
	},
	{
		"nil: a rewind is not given up", "lifecycle/rewind.go",
		"if ctx == nil {",
		"if false {",
		"./lifecycle", "TestNilContextsAreErrors",
	},
	{
		"nil: a plan", "lifecycle/checkpoint/plan.go",
		"tree == nil || ctx == nil",
		"tree == nil",
		"./lifecycle", "TestNilContextsAreErrors",
	},
	{
		"nil: a plan is not applied", "lifecycle/checkpoint/apply.go",
		"p == nil || ctx == nil",
		"p == nil",
		"./lifecycle", "TestNilContextsAreErrors",
	},
	{
		"nil: nothing is taken for lost", "lifecycle/checkpoint/lostmoves.go",
		"root == nil || ctx == nil",
		"root == nil",
		"./lifecycle", "TestNilContextsAreErrors",
	},
	{
		"nil: nobody is asked", "lifecycle/checkpoint/open.go",
		"p == nil || ctx == nil",
		"p == nil",
		"./lifecycle", "TestNilContextsAreErrors",
	},
}
