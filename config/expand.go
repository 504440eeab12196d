package config

import (
	"errors"
	"fmt"
	"strings"
)

// maxExpanded bounds what all variables together put into one file, in bytes.
const maxExpanded = 1 << 20

var errExpanded = errors.New("the variables of this file hold more than 1 MiB together")

// expand replaces ${VAR} and ${VAR:-default} in text, and $$ by $. A default
// stands for a variable that is unset or empty, as in a shell; it ends at the
// first "}" and is not expanded itself. Any other $ stays as it is.
func expand(text string, env func(string) (string, bool)) (string, error) {
	if !strings.Contains(text, "$") {
		return text, nil
	}
	var b strings.Builder
	for {
		before, after, found := strings.Cut(text, "$")
		b.WriteString(before)
		switch {
		case !found:
			return b.String(), nil
		case strings.HasPrefix(after, "$"):
			b.WriteByte('$')
			text = after[1:]
		case strings.HasPrefix(after, "{"):
			inside, rest, closed := strings.Cut(after[1:], "}")
			if !closed {
				return "", errors.New(`"${" without "}"; write $$ for a plain $`)
			}
			value, err := lookup(inside, env)
			if err != nil {
				return "", err
			}
			b.WriteString(value)
			text = rest
		default:
			b.WriteByte('$')
			text = after
		}
		if b.Len() > maxExpanded {
			return "", errExpanded
		}
	}
}

func lookup(inside string, env func(string) (string, bool)) (string, error) {
	name, fallback, hasFallback := strings.Cut(inside, ":-")
	if !isVariable(name) {
		return "", fmt.Errorf(`"${%s}" names no variable: a name has letters, digits and _; write $$ for a plain $`, inside)
	}
	value, set := env(name)
	switch {
	case hasFallback && value == "":
		return fallback, nil
	case !set:
		return "", fmt.Errorf("the variable %s is not set; ${%s:-} would make it empty", name, name)
	}
	return value, nil
}

func isVariable(name string) bool {
	for i, c := range []byte(name) {
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}
