// Package settings knows every setting of lopen and lays its sources over each
// other: a flag over a LOPEN_* variable over the project's config.json over the
// user's over the default.
//
// # Concurrency
//
// Values are immutable after Load.
package settings
