package settings

import (
	"time"

	"github.com/lopen-dev/lopen/writer/strictjson"
)

// Values are the settings in force. A field is a setting: its tag json is the name in a
// config.json, default its value where nothing sets it, of the texts that it may be, most the
// largest number that it may be, and help what `config show` says. 0 is off or no limit. Of
// the rules, user says that a project's config.json does not count, because what comes with a
// clone must not decide it; adds that a project's list is appended to the user's; inside that
// a path stays within the project.
type Values struct {
	AutoResume           bool             `json:"auto_resume" default:"true" help:"go on with an unfinished session when nobody can be asked"`
	SessionRetention     int              `json:"session_retention" default:"10" help:"completed sessions that prune keeps"`
	RetentionDays        int              `json:"retention_days" help:"days after which prune takes a completed session"`
	RetentionBytes       int              `json:"retention_bytes" help:"bytes that all completed sessions may take"`
	ImportRetention      int              `json:"import_retention" help:"sessions that no run made, imported or of a plugin, that prune keeps"`
	TrashDays            int              `json:"trash_days" default:"7" help:"days for which a pruned session can be restored"`
	BackupRetention      int              `json:"backup_retention" rule:"user" help:"backups that a backup's folder keeps; a project cannot set it"`
	BackupDays           int              `json:"backup_days" rule:"user" help:"days after which a backup is removed; a project cannot set it"`
	BackupBytes          int              `json:"backup_bytes" rule:"user" help:"bytes that all backups in a folder may need; a project cannot set it"`
	SaveIterationHistory bool             `json:"save_iteration_history" help:"keep the whole state at each iteration"`
	SnapshotInterval     int              `json:"snapshot_interval" default:"50" help:"keep the whole state every so many saves"`
	SnapshotRetention    int              `json:"snapshot_retention" default:"5" help:"whole states of each kind that are kept"`
	AutosaveInterval     time.Duration    `json:"autosave_interval" help:"save what changed without a save after this time"`
	Checkpoint           bool             `json:"checkpoint" default:"true" help:"keep the project's files before and after each task"`
	CheckpointBytes      int              `json:"checkpoint_bytes" default:"2147483648" help:"bytes that checkpoints may take, at most a tenth of the free space"`          // 2 GiB
	JournalBytes         int              `json:"journal_bytes" default:"268435456" help:"bytes that the log of a session may take, without messages, events and attempts"` // 256 MiB
	Compression          string           `json:"compression" default:"zstd" of:"zstd, gzip, none" help:"how closed segments of the log, snapshots, outputs and large objects are compressed"`
	CompressionLevel     int              `json:"compression_level" default:"3" most:"22" help:"from 1, the fastest, to 22; gzip has 9"`
	CompressionThreshold int              `json:"compression_threshold" default:"65536" help:"bytes up to which an output or an object stays as it is"` // 64 KiB
	RequireChange        bool             `json:"require_change" help:"a task that changed no file has failed"`
	Output               bool             `json:"output" default:"true" help:"keep what each attempt printed, rendered and redacted"`
	Transcript           bool             `json:"transcript" help:"keep each attempt's prompt and raw output too, not only of failed ones"`
	Redact               bool             `json:"redact" default:"true" rule:"user" help:"hide credentials in what is kept; a project cannot set it"`
	RedactPatterns       []string         `json:"redact_patterns" rule:"adds" help:"regular expressions of what else is hidden; a project's add to the user's"`
	FailureThreshold     int              `json:"failure_threshold" default:"3" help:"attempts at a task before it has failed"`
	MaxIterations        int              `json:"max_iterations" default:"100" help:"starts of the command in one run"`
	Unattended           bool             `json:"unattended" help:"never ask: failed tasks are left, the rest goes on"`
	Agent                string           `json:"agent" help:"the agent that works, by name; none for a command that is not looked into"`
	Agents               strictjson.Value `json:"agents" rule:"user" help:"recipes of other agents, by name"`
	Fallback             []string         `json:"fallback" help:"agents that work while the ones before them are limited"`
	Command              []string         `json:"command" help:"command line of the agent, when none is typed"`
	OnEvent              string           `json:"on_event" help:"shell command that gets each event of a run as JSON on stdin"`
	MaxCost              float64          `json:"max_cost" help:"USD that one run may cost"`
	MaxTokens            int              `json:"max_tokens" help:"tokens that one run may use, cached ones not counted"`
	DayCost              float64          `json:"day_cost" help:"USD that all runs of a day may cost in this project"`
	DayTokens            int              `json:"day_tokens" help:"tokens that all runs of a day may use in this project"`
	Gate                 bool             `json:"gate" help:"run check when a turn of an agent ends that tells by its hooks, and send its output back"`
	Check                string           `json:"check" help:"shell command that judges a task: exit 0 is done"`
	Unit                 string           `json:"unit" default:"leaf" of:"leaf, task, component" help:"what one start of the command works on"`
	Timeout              time.Duration    `json:"timeout" help:"end an attempt after this time"`
	IdleTimeout          time.Duration    `json:"idle_timeout" help:"end an attempt, or its check, after this time without output; unattended 30m where it is not set"`
	Wait                 time.Duration    `json:"wait" default:"6h" help:"wait at most this long in all for the agent's limit"`
	Replicate            string           `json:"replicate" default:"async" of:"async, task" help:"task: a box is ticked when the fleet has the task's state"`
	ReplicateTimeout     time.Duration    `json:"replicate_timeout" default:"5m" help:"how long a task waits for the fleet before the run pauses"`
	CacheBytes           int              `json:"cache_bytes" default:"67108864" help:"bytes that cached outlines may take, in memory and again on the disk"` // 64 MiB
	AssessmentTTL        time.Duration    `json:"assessment_ttl" default:"15m" help:"how long the result of assess counts"`
	RequirementsDir      string           `json:"requirements_dir" default:"docs/requirements" rule:"inside" help:"folder of the specifications, relative to the project"`
	SafeDirectories      []string         `json:"safe_directories" rule:"user" help:"projects of other users that may be run"`

	source  map[string]Source
	ignored []string
}
