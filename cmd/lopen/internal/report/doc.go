// Package report turns the log of a session into what a person wants to know of a night:
// what failed and why, what waited, what is done, what it used, and what to type next.
//
// A [Reader] takes the records of the log in their order and keeps little of each. Its
// Report adds what the State says of the tasks. Nothing of it is stored: the report of an
// old session is made like that of one that runs.
//
// Texts are those of agents and checks: redacted when they were put on record, and neither
// clean nor short. [Report.Markdown] shows each on lines of its own, bounded.
package report
