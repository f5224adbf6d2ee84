//go:build unix

package mock

import (
	"fmt"
	"path/filepath"
	"regexp"
	"time"
)

const uuid = "11111111-2222-4333-8444-555555555555"

func write(s *stage, agent, file, content string) *Tool {
	path := filepath.Join(s.project, file)
	switch agent {
	case "claude":
		return &Tool{Name: "Write", Input: map[string]any{"file_path": path, "content": content}}
	case "opencode":
		return &Tool{Name: "write", Input: map[string]any{"filePath": path, "content": content}}
	}
	return &Tool{Name: "exec_command", Input: map[string]any{"cmd": "printf '" + content + "' > " + file}}
}

func success(agent string) func(s *stage, r Request) Answer {
	return func(s *stage, r Request) Answer {
		if r.Results == 0 {
			return Answer{Text: "I write the file.", Tool: write(s, agent, "hello.txt", "hello"), Usage: Usage{Input: 100, Output: 20, Cached: 1000}}
		}
		return Answer{Text: "The file is written.", Usage: Usage{Input: 50, Output: 10, Cached: 1100}}
	}
}

func fails(e Error) func(s *stage, r Request) Answer {
	return func(s *stage, r Request) Answer { return Answer{Error: &e} }
}

func anthropicError(kind, message string) string {
	return encode(map[string]any{"type": "error", "error": map[string]any{"type": kind, "message": message}, "request_id": "req_mock"})
}

func samples() []sample {
	accept := []string{"--permission-mode", "acceptEdits", "--session-id", uuid}
	full := []string{"--sandbox", "workspace-write"}
	reset := func(d time.Duration) string { return fmt.Sprint(time.Now().Add(d).Unix()) }
	again := func(args ...string) func(*stage, sample) {
		return func(st *stage, s sample) {
			st.record(sample{agent: s.agent, name: s.name + "_resumed", about: "the same session again", args: args, env: s.env, prompt: "go on"})
		}
	}
	return []sample{
		{agent: "claude", name: "success", about: "a tool call that writes a file, then text", args: accept, answer: success("claude")},
		{agent: "claude", name: "limit", about: "429 rate_limit_error without reset", args: accept, answer: fails(Error{429, nil, anthropicError("rate_limit_error", "This request would exceed your account's rate limit. Please try again later.")})},
		{agent: "claude", name: "limit_reset", about: "429 with retry-after 7200 and anthropic-ratelimit-unified-reset", args: accept, answer: fails(Error{429, map[string]string{
			"retry-after": "7200", "anthropic-ratelimit-unified-reset": reset(2 * time.Hour), "anthropic-ratelimit-unified-status": "rejected",
			"anthropic-ratelimit-unified-representative-claim": "five_hour", "anthropic-ratelimit-unified-5h-status": "rejected", "anthropic-ratelimit-unified-5h-reset": reset(2 * time.Hour), "anthropic-ratelimit-unified-overage-status": "rejected",
		}, anthropicError("rate_limit_error", "This request would exceed your account's rate limit. Please try again later.")})},
		{agent: "claude", name: "limit_oauth", about: "429 with reset headers, subscription token (CLAUDE_CODE_OAUTH_TOKEN)", args: accept, env: []string{"ANTHROPIC_API_KEY=", "CLAUDE_CODE_OAUTH_TOKEN=sk-ant-oat01-dummy"}, answer: fails(Error{429, map[string]string{
			"retry-after": "7200", "anthropic-ratelimit-unified-reset": reset(2 * time.Hour), "anthropic-ratelimit-unified-status": "rejected",
			"anthropic-ratelimit-unified-representative-claim": "five_hour", "anthropic-ratelimit-unified-5h-status": "rejected", "anthropic-ratelimit-unified-5h-reset": reset(2 * time.Hour), "anthropic-ratelimit-unified-overage-status": "rejected",
		}, anthropicError("rate_limit_error", "This request would exceed your account's rate limit. Please try again later.")})},
		{agent: "claude", name: "login", about: "401", args: accept, answer: fails(Error{401, nil, anthropicError("authentication_error", "invalid x-api-key")})},
		{agent: "claude", name: "login_oauth", about: "401 with a subscription token", args: accept, env: []string{"ANTHROPIC_API_KEY=", "CLAUDE_CODE_OAUTH_TOKEN=sk-ant-oat01-dummy"}, answer: fails(Error{401, nil, anthropicError("authentication_error", "OAuth token has expired.")})},
		{agent: "claude", name: "no_login", about: "no key, no token", args: accept, env: []string{"ANTHROPIC_API_KEY="}, answer: success("claude")},
		{agent: "claude", name: "overload", about: "529", args: accept, answer: fails(Error{529, nil, anthropicError("overloaded_error", "Overloaded")})},
		{agent: "claude", name: "denied", about: "acceptEdits, Bash go test ./... refused", args: accept, answer: func(_ *stage, r Request) Answer {
			if r.Results == 0 {
				return Answer{Text: "I run the tests.", Tool: &Tool{Name: "Bash", Input: map[string]any{"command": "go test ./...", "description": "run the tests"}}, Usage: Usage{Input: 100, Output: 20}}
			}
			return Answer{Text: "I could not run the tests.", Usage: Usage{Input: 50, Output: 10, Cached: 100}}
		}},
		{agent: "claude", name: "granted", about: "the same with --allowedTools 'Bash(go test ./...)'", args: append([]string{"--allowedTools", "Bash(go test ./...)"}, accept...), answer: func(_ *stage, r Request) Answer {
			if r.Results == 0 {
				return Answer{Text: "I run the tests.", Tool: &Tool{Name: "Bash", Input: map[string]any{"command": "go test ./...", "description": "run the tests"}}, Usage: Usage{Input: 100, Output: 20}}
			}
			return Answer{Text: "The tests ran.", Usage: Usage{Input: 50, Output: 10, Cached: 100}}
		}},
		{agent: "claude", name: "cut", about: "every stream is cut at byte 700", args: accept, answer: func(_ *stage, r Request) Answer {
			return Answer{Text: "I begin with the work and ", Deltas: 20, Cut: 700}
		}},
		{agent: "claude", name: "cut_early", about: "every stream is cut at byte 100, before any text", args: accept, answer: func(_ *stage, r Request) Answer {
			return Answer{Text: "I begin with the work and ", Deltas: 20, Cut: 100}
		}},
		{agent: "claude", name: "cut_once", about: "the first stream is cut at byte 700, the rest works", args: accept, answer: func(s *stage, r Request) Answer {
			if r.N == 1 {
				return Answer{Text: "I begin with the work and ", Deltas: 20, Cut: 700}
			}
			return success("claude")(s, r)
		}},
		{agent: "claude", name: "model", about: "404 not_found_error model", args: append([]string{"--model", "claude-nope"}, accept...), answer: fails(Error{404, nil, anthropicError("not_found_error", "model: claude-nope")})},
		{agent: "claude", name: "down", about: "connection refused", args: accept, down: true},
		{agent: "claude", name: "endless", about: "deltas for ever, one every 200 ms", limit: 15 * time.Second, args: accept, answer: func(_ *stage, r Request) Answer {
			return Answer{Text: "still thinking ", Deltas: -1, Pace: 200 * time.Millisecond}
		}},
		{agent: "claude", name: "endless_partial", about: "the same with --include-partial-messages", limit: 8 * time.Second, args: append([]string{"--include-partial-messages"}, accept...), answer: func(_ *stage, r Request) Answer {
			return Answer{Text: "still thinking ", Deltas: -1, Pace: 200 * time.Millisecond}
		}},
		{agent: "claude", name: "success_partial", about: "success with --include-partial-messages", args: append([]string{"--include-partial-messages"}, accept...), answer: success("claude")},
		{agent: "claude", name: "nested", about: "CLAUDECODE=1 in the environment", env: []string{"CLAUDECODE=1"}, args: accept, answer: success("claude")},
		{agent: "claude", name: "killed", about: "SIGKILL while the second answer streams", kill: true, args: accept, answer: func(s *stage, r Request) Answer {
			if r.N == 2 {
				return Answer{Text: "still working ", Deltas: -1, Pace: 200 * time.Millisecond}
			}
			return success("claude")(s, r)
		}, then: again("--permission-mode", "acceptEdits", "--resume", uuid)},
		{agent: "claude", name: "same_session_id", about: "--session-id twice", args: accept, answer: success("claude"), then: again(accept...)},
		{agent: "claude", name: "resume_unknown", about: "--resume of a session that does not exist", args: []string{"--resume", "99999999-2222-4333-8444-555555555555"}, answer: success("claude")},
		{agent: "claude", name: "budget", about: "--max-budget-usd 0.000001", args: append([]string{"--max-budget-usd", "0.000001"}, accept...), answer: success("claude")},
		{agent: "claude", name: "credit", about: "400 credit balance too low", args: accept, answer: fails(Error{400, nil, anthropicError("invalid_request_error", "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits.")})},
		{agent: "claude", name: "server_error", about: "500 api_error", args: accept, limit: 20 * time.Second, answer: fails(Error{500, nil, anthropicError("api_error", "Internal server error")})},
		// codex
		{agent: "codex", name: "success", about: "a tool call that writes a file, then text", args: full, answer: success("codex")},
		{agent: "codex", name: "success_default_model", about: "the same with the default model, whose tool is exec with JavaScript", args: full, answer: func(s *stage, r Request) Answer {
			a := success("codex")(s, r)
			if a.Tool != nil {
				a.Tool = &Tool{Name: "exec", Script: `text(await tools.exec_command({cmd: "printf hello > hello.txt"}))`}
			}
			return a
		}},
		{agent: "codex", name: "limit", about: "429 usage_limit_reached with resets_at and resets_in_seconds", args: full, answer: fails(Error{429, map[string]string{"x-codex-primary-used-percent": "100"}, encode(map[string]any{"error": map[string]any{"type": "usage_limit_reached", "message": "The usage limit has been reached", "plan_type": "plus", "resets_at": time.Now().Add(2 * time.Hour).Unix(), "resets_in_seconds": 7200}})})},
		{agent: "codex", name: "limit_days", about: "the same, three days ahead", args: full, answer: fails(Error{429, nil, encode(map[string]any{"error": map[string]any{"type": "usage_limit_reached", "message": "The usage limit has been reached", "plan_type": "plus", "resets_at": time.Now().Add(74 * time.Hour).Unix(), "resets_in_seconds": 74 * 3600}})})},
		{agent: "codex", name: "limit_noreset", about: "429 usage_limit_reached without reset", args: full, answer: fails(Error{429, nil, encode(map[string]any{"error": map[string]any{"type": "usage_limit_reached", "message": "The usage limit has been reached", "plan_type": "plus"}})})},
		{agent: "codex", name: "limit_rate", about: "429 rate_limit_exceeded with retry-after 7200", args: full, answer: fails(Error{429, map[string]string{"retry-after": "7200"}, encode(map[string]any{"error": map[string]any{"type": "rate_limit_exceeded", "code": "rate_limit_exceeded", "message": "Rate limit reached for gpt-5 in organization org on tokens per min (TPM): Limit 30000, Used 30000. Please try again in 20s."}})})},
		{agent: "codex", name: "quota", about: "429 insufficient_quota", args: full, answer: fails(Error{429, nil, encode(map[string]any{"error": map[string]any{"type": "insufficient_quota", "code": "insufficient_quota", "message": "You exceeded your current quota, please check your plan and billing details."}})})},
		{agent: "codex", name: "login", about: "401", args: full, answer: fails(Error{401, nil, encode(map[string]any{"error": map[string]any{"type": "invalid_request_error", "code": "invalid_api_key", "message": "Incorrect API key provided: dummy."}})})},
		{agent: "codex", name: "no_key", about: "the key's variable is not set", args: full, env: []string{"MOCK_KEY="}, answer: success("codex")},
		{agent: "codex", name: "overload", about: "503 server is overloaded", args: full, answer: fails(Error{503, nil, encode(map[string]any{"error": map[string]any{"type": "server_is_overloaded", "code": "server_is_overloaded", "message": "Our servers are currently overloaded. Please try again later."}})})},
		{agent: "codex", name: "server_error", about: "500", args: full, answer: fails(Error{500, nil, encode(map[string]any{"error": map[string]any{"type": "server_error", "message": "internal"}})})},
		{agent: "codex", name: "no_git", about: "no git repository", noGit: true, answer: success("codex")},
		{agent: "codex", name: "no_git_skip", about: "no git repository, --skip-git-repo-check", args: []string{"--skip-git-repo-check", "--sandbox", "workspace-write"}, noGit: true, answer: success("codex")},
		{agent: "codex", name: "denied", about: "default sandbox read-only refuses a write", answer: success("codex")},
		{agent: "codex", name: "model", about: "404 model_not_found", args: full, answer: fails(Error{404, nil, encode(map[string]any{"error": map[string]any{"type": "invalid_request_error", "code": "model_not_found", "message": "The model `gpt-nope` does not exist or you do not have access to it."}})})},
		{agent: "codex", name: "model400", about: "400 model not supported with a ChatGPT account", args: full, answer: fails(Error{400, nil, encode(map[string]any{"detail": "The 'gpt-nope' model is not supported when using Codex with a ChatGPT account."})})},
		{agent: "codex", name: "cut", about: "every stream is cut at byte 700", args: full, answer: func(_ *stage, r Request) Answer {
			return Answer{Text: "I begin with the work and ", Deltas: 20, Cut: 700}
		}},
		{agent: "codex", name: "cut_once", about: "the first stream is cut at byte 700, the rest works", args: full, answer: func(s *stage, r Request) Answer {
			if r.N == 1 {
				return Answer{Text: "I begin with the work and ", Deltas: 20, Cut: 700}
			}
			return success("codex")(s, r)
		}},
		{agent: "codex", name: "killed", about: "SIGKILL while the second answer streams", kill: true, args: full, answer: func(s *stage, r Request) Answer {
			if r.N == 2 {
				return Answer{Text: "still working ", Deltas: -1, Pace: 200 * time.Millisecond}
			}
			return success("codex")(s, r)
		}, then: func(st *stage, s sample) {
			id := regexp.MustCompile(`thread_id":"([^"]*)`).FindStringSubmatch(st.printed)[1]
			again("resume", id, "--json", "-")(st, s)
			for _, args := range [][]string{ // each counts from the session's beginning
				{"flags_before", "--sandbox", "workspace-write", "--skip-git-repo-check", "resume", "--json", id, "-"},
				{"flags", "resume", id, "--json", "--sandbox", "workspace-write", "--skip-git-repo-check", "-"},
				{"skip", "resume", "--json", "--skip-git-repo-check", "-c", "sandbox_mode=workspace-write", id, "-"},
				{"dash", "resume", "--json", id, "-"}, {"nodash", "resume", "--json", id},
				{"unknown", "resume", "--json", "01a20371-03a1-7221-b807-0a1af0e2dc99", "-"},
			} {
				st.record(sample{agent: s.agent, name: "killed_resumed_" + args[0], about: "the same session again", args: args[1:], prompt: "go on"})
			}
		}},
		{agent: "codex", name: "down", about: "connection refused", args: full, down: true},
		{agent: "codex", name: "endless", about: "deltas for ever, one every 200 ms", limit: 15 * time.Second, args: full, answer: func(_ *stage, r Request) Answer {
			return Answer{Text: "still thinking ", Deltas: -1, Pace: 200 * time.Millisecond}
		}},
		// opencode
		{agent: "opencode", name: "success", about: "a tool call that writes a file, then text", answer: success("opencode")},
		{agent: "opencode", name: "success_argument", about: "the prompt is an argument, stdin empty", args: []string{"write the file"}, prompt: "\n", answer: success("opencode")},
		{agent: "opencode", name: "limit", about: "429 without reset", answer: fails(Error{429, nil, anthropicError("rate_limit_error", "This request would exceed your account's rate limit. Please try again later.")})},
		{agent: "opencode", name: "limit_reset", about: "429 with retry-after 7200", answer: fails(Error{429, map[string]string{"retry-after": "7200"}, anthropicError("rate_limit_error", "This request would exceed your account's rate limit. Please try again later.")})},
		{agent: "opencode", name: "login", about: "401", answer: fails(Error{401, nil, anthropicError("authentication_error", "invalid x-api-key")})},
		{agent: "opencode", name: "no_login", about: "no key", env: []string{"ANTHROPIC_API_KEY="}, answer: success("opencode")},
		{agent: "opencode", name: "overload", about: "529", answer: fails(Error{529, nil, anthropicError("overloaded_error", "Overloaded")})},
		{agent: "opencode", name: "model", about: "404 not_found_error model", answer: fails(Error{404, nil, anthropicError("not_found_error", "model: claude-sonnet-4-5")})},
		{agent: "opencode", name: "model_unknown", about: "a model that opencode does not know", args: []string{"--model", "anthropic/claude-nope"}, answer: success("opencode")},
		{agent: "opencode", name: "cut", about: "every stream is cut at byte 700", answer: func(_ *stage, r Request) Answer {
			return Answer{Text: "I begin with the work and ", Deltas: 20, Cut: 700}
		}},
		{agent: "opencode", name: "killed", about: "SIGKILL while the second answer streams", kill: true, answer: func(s *stage, r Request) Answer {
			if r.N == 2 {
				return Answer{Text: "still working ", Deltas: -1, Pace: 200 * time.Millisecond}
			}
			return success("opencode")(s, r)
		}, then: func(st *stage, s sample) {
			id := regexp.MustCompile(`sessionID":"([^"]*)`).FindStringSubmatch(st.printed)[1]
			again("--session", id)(st, s)
			st.record(sample{agent: s.agent, name: "resume_unknown", about: "a session that does not exist", args: []string{"--session", "ses_0000000000000000000000000"}})
		}},
		{agent: "opencode", name: "down", about: "connection refused", down: true},
		{agent: "opencode", name: "denied", about: "permission bash: ask", env: []string{`OPENCODE_PERMISSION={"bash":"ask"}`}, answer: func(_ *stage, r Request) Answer {
			if r.Results == 0 {
				return Answer{Text: "I run the tests.", Tool: &Tool{Name: "bash", Input: map[string]any{"command": "go test ./...", "description": "run the tests"}}, Usage: Usage{Input: 100, Output: 20}}
			}
			return Answer{Text: "I could not run the tests.", Usage: Usage{Input: 50, Output: 10, Cached: 100}}
		}},
		{agent: "opencode", name: "endless", about: "deltas for ever, one every 200 ms", limit: 15 * time.Second, answer: func(_ *stage, r Request) Answer {
			return Answer{Text: "still thinking ", Deltas: -1, Pace: 200 * time.Millisecond}
		}},
	}
}
