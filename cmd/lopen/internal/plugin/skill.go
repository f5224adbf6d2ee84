package plugin

import _ "embed" // the skill

// Skill teaches an agent when to look at what is kept, and by which commands.
//
//go:embed SKILL.md
var Skill string
