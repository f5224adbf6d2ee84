// House prints the shape of the source: lines, files and exported names of each room, the
// longest files, and exported names that nothing outside their package uses. Its test
// holds the bounds that DESIGN.md names, and that what a sentence puts into a command is quoted.
package main
