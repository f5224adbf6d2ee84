package agent

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/writer/plain"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// What a recipe may hold at most.
const (
	maxRecipes = 50
	maxArgs    = 100
	maxArg     = 4 << 10 // bytes
)

var (
	recipeName = plain.Pattern(`^[a-z0-9][a-z0-9._-]{0,63}$`)
	inputs     = []string{string(InputStdin), string(InputArgument), string(InputFile)}
	dialects   = []string{"claude", "codex", "opencode", "text"}
)

// Recipes reads the user's setting agents: an object of profiles by name. An error names
// the recipe, the field, and what would be right. A recipe may replace a known profile.
func Recipes(object []byte) (map[string]Profile, error) {
	if len(object) == 0 {
		return nil, nil
	}
	var all map[string]strictjson.Value
	if err := strictjson.Unmarshal(object, &all); err != nil {
		return nil, fmt.Errorf("read agents: no object of recipes by name: %w", err)
	}
	if len(all) > maxRecipes {
		return nil, fmt.Errorf("read agents: %d recipes, more than %d", len(all), maxRecipes)
	}
	recipes := make(map[string]Profile, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !recipeName().MatchString(name) || name == None {
			return nil, fmt.Errorf("read agents: %q is no name of a recipe: give lower-case letters, digits, dots and dashes, and not %s", clip(name, 100), None)
		}
		p, err := recipe(all[name])
		if err != nil {
			return nil, fmt.Errorf("read agents: %s: %w", name, err)
		}
		p.Name = name
		recipes[name] = p
	}
	return recipes, nil
}

// recipe reads one recipe.
func recipe(raw strictjson.Value) (p Profile, err error) {
	var fields map[string]strictjson.Value
	if err := strictjson.Unmarshal(raw, &fields); err != nil || fields == nil {
		return p, fmt.Errorf(`give an object like {"start": ["aider", "--yes"]}`)
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if err := p.read(name, fields[name]); err != nil {
			return p, fmt.Errorf("%s: %w", clip(name, 100), err)
		}
	}
	if p.Start == nil {
		return p, fmt.Errorf(`start is missing: give the command line, like ["aider", "--yes"]`)
	}
	return p, nil
}

// read reads one field of a recipe.
func (p *Profile) read(name string, field strictjson.Value) (err error) {
	switch name {
	case "start":
		p.Start, err = recipeArgs(field, 0)
	case "resume":
		p.Resume, err = recipeArgs(field, 1)
	case "open":
		p.Open, err = recipeArgs(field, 1)
	case "ready":
		p.Ready, err = recipeArgs(field, 0)
	case "prompt":
		var s string
		s, err = oneOf(field, inputs)
		p.Prompt = Input(s)
	case "events":
		p.Events, err = oneOf(field, dialects)
	case "login":
		if strictjson.Unmarshal(field, &p.Login) != nil || len(p.Login) > maxDetail || strings.ContainsFunc(p.Login, func(r rune) bool { return r < ' ' }) {
			err = fmt.Errorf("give one line of at most %d bytes", maxDetail)
		}
	default:
		err = fmt.Errorf("there is no such field: give start, prompt, events, resume, open, ready or login")
	}
	return err
}

// recipeArgs reads a list of arguments, in which {session} stands so many times.
func recipeArgs(raw strictjson.Value, sessions int) (args []string, err error) {
	if strictjson.Unmarshal(raw, &args) != nil || len(args) == 0 || len(args) > maxArgs || args[0] == "" {
		return nil, fmt.Errorf(`give a list of 1 to %d arguments, like ["one", "two"]`, maxArgs)
	}
	n := 0
	for _, arg := range args {
		if len(arg) > maxArg || strings.ContainsRune(arg, 0) {
			return nil, fmt.Errorf("give arguments of at most %d bytes, without NUL", maxArg)
		}
		n += strings.Count(arg, placeholder)
	}
	switch {
	case n != sessions && sessions == 0:
		return nil, fmt.Errorf("%s has no meaning here: it stands in resume and open", placeholder)
	case n != sessions:
		return nil, fmt.Errorf("%s must stand in it once: it is the session's ID", placeholder)
	}
	return args, nil
}

func oneOf(raw strictjson.Value, all []string) (s string, err error) {
	if strictjson.Unmarshal(raw, &s) != nil || !slices.Contains(all, s) {
		return "", fmt.Errorf("give one of %s", strings.Join(all, ", "))
	}
	return s, nil
}
