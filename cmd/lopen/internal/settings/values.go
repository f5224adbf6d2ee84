package settings

import (
	"time"

	"github.com/lopen-dev/lopen/writer/strictjson"
)

// Values are the settings in force. A field is a setting: its tag json is the name in a
// config.json, default its value where nothing sets it, of the texts that it may be, most the
// largest number that it may be, and help what `config show` says. 0 is off or no limit.
//
// Whose a setting is follows from rule and stricter, because what comes with a clone, or is
// written by an agent, must not weaken what this user relies on. The user's own (rule user)
// counts only from their config, a variable or a flag. A tightening one (stricter) counts from
// a project where it is stricter than the user's, or where this user set it here. The others
// are free, with a rule at most: adds appends a project's list to the user's, inside keeps a
// path within the project, fills takes a project's value where the user has none, and set-here
// only where this user set it here.
//
// stricter says which way: lower and higher are of numbers in which 0 is no limit, least is of
// those in which 0 is the least, filled prefers any text to none, and all else is the one
// value that is stricter.
type Values struct {
	AutoResume           bool             `json:"auto_resume" default:"true" help:"go on with an unfinished session when nobody can be asked"`
	SessionRetention     int              `json:"session_retention" rule:"user" default:"10" help:"completed sessions that prune keeps"`
	RetentionDays        int              `json:"retention_days" rule:"user" help:"days after which prune takes a completed session"`
	RetentionBytes       int              `json:"retention_bytes" rule:"user" help:"bytes that all completed sessions may take"`
	ImportRetention      int              `json:"import_retention" rule:"user" help:"sessions that no run made, imported or of a plugin, that prune keeps"`
	TrashDays            int              `json:"trash_days" rule:"user" default:"7" help:"days for which a pruned session can be restored"`
	BackupRetention      int              `json:"backup_retention" rule:"user" help:"backups that a backup's folder keeps"`
	BackupDays           int              `json:"backup_days" rule:"user" help:"days after which a backup is removed"`
	BackupBytes          int              `json:"backup_bytes" rule:"user" help:"bytes that all backups in a folder may need"`
	SaveIterationHistory bool             `json:"save_iteration_history" help:"keep the whole state at each iteration"`
	SnapshotInterval     int              `json:"snapshot_interval" default:"50" help:"keep the whole state every so many saves"`
	SnapshotRetention    int              `json:"snapshot_retention" rule:"user" default:"5" help:"whole states of each kind that are kept"`
	AutosaveInterval     time.Duration    `json:"autosave_interval" help:"save what changed without a save after this time"`
	Checkpoint           bool             `json:"checkpoint" stricter:"true" default:"true" help:"keep the project's files before and after each task"`
	CheckpointBytes      int              `json:"checkpoint_bytes" stricter:"higher" default:"2147483648" help:"bytes that checkpoints may take, at most a tenth of the free space"`          // 2 GiB
	JournalBytes         int              `json:"journal_bytes" stricter:"higher" default:"268435456" help:"bytes that the log of a session may take, without messages, events and attempts"` // 256 MiB
	Compression          string           `json:"compression" default:"zstd" of:"zstd, gzip, none" help:"how what is large is compressed"`
	CompressionLevel     int              `json:"compression_level" default:"3" most:"22" help:"from 1, the fastest, to 22; gzip has 9"`
	CompressionThreshold int              `json:"compression_threshold" default:"65536" help:"bytes up to which an output or an object stays as it is"` // 64 KiB
	RequireChange        bool             `json:"require_change" stricter:"true" help:"a task that changed no file has failed"`
	Output               bool             `json:"output" stricter:"true" default:"true" help:"keep what each attempt printed, rendered and redacted"`
	Transcript           bool             `json:"transcript" stricter:"false" help:"keep each attempt's prompt and raw output too, not only of failed ones"`
	Redact               bool             `json:"redact" default:"true" rule:"user" help:"hide credentials in what is kept"`
	RedactPatterns       []string         `json:"redact_patterns" rule:"adds" help:"regular expressions of what else is hidden; a project's add to the user's"`
	FailureThreshold     int              `json:"failure_threshold" stricter:"lower" default:"3" help:"attempts at a task before it has failed"`
	MaxIterations        int              `json:"max_iterations" stricter:"lower" default:"100" help:"starts of the command in one run"`
	Unattended           bool             `json:"unattended" rule:"set-here" help:"never ask: failed tasks are left, the rest goes on"`
	Agent                string           `json:"agent" rule:"fills" help:"the agent that works, by name; none for a command that is not looked into"`
	Agents               strictjson.Value `json:"agents" rule:"user" help:"recipes of other agents, by name"`
	Fallback             []string         `json:"fallback" rule:"set-here" help:"agents that work while the ones before them are limited"`
	Command              []string         `json:"command" rule:"fills" help:"command line of the agent, when none is typed"`
	OnEvent              string           `json:"on_event" rule:"user" help:"shell command that gets each event of a run as JSON on stdin"`
	MaxCost              float64          `json:"max_cost" stricter:"lower" help:"USD that one run may cost"`
	MaxTokens            int              `json:"max_tokens" stricter:"lower" help:"tokens that one run may use, cached ones not counted"`
	DayCost              float64          `json:"day_cost" stricter:"lower" help:"USD that all runs of a day may cost in this project"`
	DayTokens            int              `json:"day_tokens" stricter:"lower" help:"tokens that all runs of a day may use in this project"`
	Gate                 bool             `json:"gate" stricter:"true" help:"run check when an agent's turn ends (hooks), and send its output back"`
	Check                string           `json:"check" stricter:"filled" help:"shell command that judges a task: exit 0 is done"`
	Unit                 string           `json:"unit" default:"leaf" of:"leaf, task, component" help:"what one start of the command works on"`
	Timeout              time.Duration    `json:"timeout" stricter:"lower" help:"end an attempt after this time"`
	IdleTimeout          time.Duration    `json:"idle_timeout" stricter:"lower" help:"end an attempt, or its check, after this time without output (unattended 30m)"`
	Wait                 time.Duration    `json:"wait" stricter:"least" default:"6h" help:"wait at most this long in all for the agent's limit"`
	Replicate            string           `json:"replicate" stricter:"task" default:"async" of:"async, task" help:"task: a box is ticked when the fleet has the task's state"`
	ReplicateTimeout     time.Duration    `json:"replicate_timeout" default:"5m" help:"how long a task waits for the fleet before the run pauses"`
	CacheBytes           int              `json:"cache_bytes" default:"67108864" help:"bytes that cached outlines may take, in memory and again on the disk"` // 64 MiB
	AssessmentTTL        time.Duration    `json:"assessment_ttl" stricter:"least" default:"15m" help:"how long the result of assess counts"`
	RequirementsDir      string           `json:"requirements_dir" default:"docs/requirements" rule:"inside" help:"folder of the specifications, relative to the project"`
	SafeDirectories      []string         `json:"safe_directories" rule:"user" help:"projects of other users that may be run"`

	source  map[string]Source
	ignored []string
	wrong   []string
}
