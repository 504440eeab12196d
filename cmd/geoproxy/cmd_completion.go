package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// completionCmd prints the script that makes a shell ask this program what may
// come next. The scripts hold no names of commands, so they do not age.
type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Each script offers what __complete prints for the words up to the cursor,
// and names of files where it prints nothing.
var completionScripts = map[string]string{
	"bash": `# source <(geoproxy completion bash)
_geoproxy() {
  local IFS=$'\n'
  COMPREPLY=($("${COMP_WORDS[0]}" __complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _geoproxy geoproxy
`,
	"zsh": `#compdef geoproxy
# source <(geoproxy completion zsh)
_geoproxy() {
  local -a next
  next=(${(f)"$("${words[1]}" __complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)"})
  if (( ${#next} )); then compadd -- "${next[@]}"; else _files; fi
}
compdef _geoproxy geoproxy
`,
	"fish": `# geoproxy completion fish | source
complete -c geoproxy -a '(geoproxy __complete -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'
`,
}

// Help says how the script is used.
func (c *completionCmd) Help() string {
	return "bash: source <(geoproxy completion bash)\nzsh: source <(geoproxy completion zsh)\nfish: geoproxy completion fish | source"
}

// Run prints the script.
func (c *completionCmd) Run(s *session) error {
	_, err := fmt.Fprint(s.stdout, completionScripts[c.Shell])
	return err
}

// completeCmd prints what may stand in the place of the last of the words, one
// candidate a line.
type completeCmd struct {
	Words []string `arg:"" optional:""`
}

// Run prints nothing where only the shell knows, as with names of files.
func (c *completeCmd) Run(s *session) error {
	words := c.Words
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	for _, candidate := range candidates(s.model.Node, words) {
		if _, err := fmt.Fprintln(s.stdout, candidate); err != nil {
			return err
		}
	}
	return nil
}

// candidates gives what may stand in the place of the last of the words that
// follow the program's name.
func candidates(node *kong.Node, words []string) []string {
	if len(words) == 0 {
		words = []string{""}
	}
	last := words[len(words)-1]
	var wanted *kong.Flag // the flag whose value comes next
	position := 0         // of the next positional argument
	for _, word := range words[:len(words)-1] {
		switch child := child(node, word); {
		case wanted != nil:
			wanted = nil
		case strings.HasPrefix(word, "-"):
			wanted = takesValue(node, word)
		case child != nil:
			node, position = child, 0
		default:
			position++
		}
	}
	var all []string
	switch {
	case wanted != nil:
		all = wanted.EnumSlice()
	case strings.HasPrefix(last, "-"):
		for _, group := range node.AllFlags(true) {
			for _, f := range group {
				all = append(all, "--"+f.Name)
			}
		}
	default:
		for _, c := range node.Children {
			if !c.Hidden {
				all = append(all, c.Name)
			}
		}
		if position < len(node.Positional) {
			all = append(all, node.Positional[position].EnumSlice()...)
		}
	}
	all = slices.DeleteFunc(all, func(s string) bool { return s == "" || !strings.HasPrefix(s, last) })
	slices.Sort(all)
	return slices.Compact(all)
}

func child(node *kong.Node, name string) *kong.Node {
	for _, c := range node.Children {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// takesValue gives the flag that word is, where its value is the next word.
func takesValue(node *kong.Node, word string) *kong.Flag {
	for _, group := range node.AllFlags(true) {
		for _, f := range group {
			if (word == "--"+f.Name || f.Short != 0 && word == "-"+string(f.Short)) && !f.IsBool() {
				return f
			}
		}
	}
	return nil
}
