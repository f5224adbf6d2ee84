package main

// ofSources are of the files that plans are made of.
var ofSources = []mutant{
	{
		"documents: UTF-16 is read in either order", "writer/documents/text.go",
		"unicode.UTF16(unicode.LittleEndian, unicode.ExpectBOM)",
		"unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)",
		"./writer/documents", "TestText",
	},
}
